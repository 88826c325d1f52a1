"""Damaged, foreign and vanished files, and a disk that refuses: each is a miss with a log line and never wrong data."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest

from engine.prefix.disk_format import PREAMBLE, VERSION, Damaged, prepare, read_record, read_segment, write_prepared
from engine.prefix.segment import Segment
from tests.engine.prefix.disk_segments import chain, found, make_tier, same, segment, stored


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One small stored segment of tokens 0 to 4."""
    tier = make_tier(tmp_path)
    stored(tier, [segment(range(5), width=3)])
    tier.close()
    (found_file,) = tmp_path.glob("*.segment")
    return found_file


def regions(data: bytes) -> dict[str, int]:
    """A position within every part of a stored segment's file."""
    _, _, json_bytes, tokens, payload, *_ = PREAMBLE.unpack_from(data)
    header = PREAMBLE.size
    assert len(data) == header + json_bytes + 4 * tokens + payload
    fields = {"magic": 0, "version": 8, "JSON length": 12, "token count": 16, "payload length": 20}
    sums = {"header checksum": 28, "payload checksum": 32, "preamble checksum": 36}
    parts = {
        "JSON": header + 5,
        "tokens": header + json_bytes + 3,
        "rows": header + json_bytes + 4 * tokens,
        "padding": len(data) - 1,
    }
    return fields | sums | parts


def test_no_flipped_bit_anywhere_in_a_file_goes_unnoticed(file: Path):
    data = file.read_bytes()
    read_segment(file)
    for position in range(len(data)):
        spoilt = bytearray(data)
        spoilt[position] ^= 1 << position % 8
        file.write_bytes(spoilt)
        with pytest.raises(Damaged):
            read_segment(file)


def test_no_file_cut_short_or_grown_is_taken_for_whole(file: Path):
    data = file.read_bytes()
    for length in range(len(data)):
        file.write_bytes(data[:length])
        with pytest.raises(Damaged):
            read_segment(file)
    for more in (b"\0", b"\0" * 64, data):
        file.write_bytes(data + more)
        with pytest.raises(Damaged):
            read_segment(file)


@pytest.mark.parametrize("indexed", [True, False], ids=["with the index", "without the index"])
def test_damage_in_every_region_is_a_miss_with_a_line_and_can_be_stored_anew(
    file: Path, indexed: bool, caplog: pytest.LogCaptureFixture
):
    data, whole = file.read_bytes(), segment(range(5), width=3)
    index = (file.parent / "index").read_bytes()
    for name, position in regions(data).items():
        spoilt = bytearray(data)
        spoilt[position] ^= 0x10
        file.write_bytes(spoilt)
        (file.parent / "index").write_bytes(index if indexed else b"")
        caplog.clear()
        tier = make_tier(file.parent)
        if indexed:
            assert found(tier, range(5)) == 5, "the index was not used"
        assert tier.load(whole.key) is None, name
        assert any(str(file) in message for message in caplog.messages), name
        assert not (indexed and file.exists())
        assert found(tier, range(5)) == 0
        stored(tier, [whole])
        assert same(tier.load(whole.key), whole) and file.read_bytes() == data, name
        tier.close()


def rewritten(data: bytes, version: int = VERSION, **changes) -> bytes:
    """The file with another header, all checksums right."""
    _, _, json_bytes, tokens, payload, _, checksum, _ = PREAMBLE.unpack_from(data)
    end = PREAMBLE.size + json_bytes
    text = json.dumps({**json.loads(data[PREAMBLE.size : end]), **changes}).encode()
    header = text + data[end : end + 4 * tokens]
    fields = (data[:8], version, len(text), tokens, payload, zlib.crc32(header), checksum)
    own = zlib.crc32(PREAMBLE.pack(*fields, 0)[:-4])
    return PREAMBLE.pack(*fields, own) + header + data[len(data) - payload :]


HUGE = 2**40
HEADERS = {
    "huge shape": {"rows": [["keys", "float32", [HUGE, HUGE], 0]]},
    "huge offset": {"rows": [["keys", "float32", [1], HUGE]]},
    "one byte too far": {"rows": [["keys", "uint8", [65], 64]], "state": []},
    "negative shape": {"rows": [["keys", "float32", [-1, -1], 0]]},
    "negative offset": {"rows": [["keys", "float32", [1], -4]]},
    "unknown dtype": {"rows": [["keys", "float128", [1], 0]]},
    "shape of fractions": {"rows": [["keys", "float32", [0.5], 0]]},
    "name that is none": {"rows": [[["keys"], "float32", [1], 0]]},
    "rows that are none": {"rows": 7},
    "entry too short": {"state": [["logits"]]},
    "another parent": {"parent": "ee" * 32},
    "parent too short": {"parent": "ee"},
    "parent that is none": {"parent": None},
    "start before 0": {"start": -1},
    "start that is none": {"start": "0"},
    "huge start": {"start": 2**70},
}


@pytest.mark.parametrize("changes", HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(file: Path, changes: dict):
    data = file.read_bytes()
    file.write_bytes(rewritten(data))
    read_segment(file)
    file.write_bytes(rewritten(data, **changes))
    with pytest.raises(Damaged):
        read_segment(file)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_another_format_version_is_a_miss_that_is_named_and_replaced(file: Path, version: int, caplog: pytest.LogCaptureFixture):
    whole = segment(range(5), width=3)
    file.write_bytes(rewritten(file.read_bytes(), version))
    (file.parent / "index").unlink()
    tier = make_tier(file.parent)
    assert found(tier, range(5)) == 0 and tier.load(whole.key) is None
    assert [f"format {version}, not {VERSION}" in message for message in caplog.messages] == [True]
    stored(tier, [whole])
    assert same(tier.load(whole.key), whole)
    tier.close()


def test_a_file_under_another_segments_name_is_not_taken_for_it(file: Path):
    other = segment(range(6), width=3)
    file.rename(file.with_stem(other.key))
    tier = make_tier(file.parent)
    assert tier.load(other.key) is None and found(tier, range(6)) == 0
    tier.close()


def test_foreign_files_links_and_pipes_are_neither_read_nor_counted_nor_removed(file: Path, tmp_path: Path):
    tier = make_tier(tmp_path)
    whole = segment(range(5), width=3)
    held = tier.nbytes
    tier.close()
    outside = tmp_path.with_name(tmp_path.name + "-outside")
    shutil.move(file, outside)
    file.symlink_to(outside)
    names = ["notes.txt", "short.segment", "A" * 64 + ".segment", "f" * 64 + ".segment.bak"]
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 10_000)
    os.mkfifo(tmp_path / ("e" * 64 + ".segment"))
    (tmp_path / ("d" * 64 + ".segment")).mkdir()
    before = {path.name for path in tmp_path.iterdir()} - {"index"}
    tier = make_tier(tmp_path, budget=held)
    assert tier.nbytes == 0 and tier.load(whole.key) is None
    others = chain(range(100, 105), 5, width=3)
    stored(tier, others)
    assert tier.nbytes == held
    tier.clear()
    tier.close()
    assert {path.name for path in tmp_path.iterdir()} == before
    assert same(read_segment(outside.rename(tmp_path / file.name)), whole)


def test_a_link_or_pipe_that_takes_a_known_files_place_is_a_miss(file: Path, tmp_path: Path):
    tier = make_tier(tmp_path)
    whole = segment(range(5), width=3)
    outside = tmp_path.with_name(tmp_path.name + "-outside")
    shutil.move(file, outside)
    file.symlink_to(outside)
    assert tier.load(whole.key) is None
    tier.close()
    file.unlink()
    shutil.copy(outside, file)
    tier = make_tier(tmp_path)
    file.unlink()
    os.mkfifo(file)
    assert tier.load(whole.key) is None
    tier.close()


def test_an_index_damaged_anywhere_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    tier = make_tier(tmp_path)
    stored(tier, chain(range(30), 10))
    tier.close()
    data = (tmp_path / "index").read_bytes()
    damaged = [data[:-1], data[:10], b"", data + b"\0", b"x" * 100]
    damaged += [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), 7)]
    for spoilt in damaged:
        (tmp_path / "index").write_bytes(spoilt)
        caplog.clear()
        tier = make_tier(tmp_path)
        assert found(tier, range(30)) == 30
        assert [message.startswith("the index of stored prefixes is made anew") for message in caplog.messages] == [True]
        tier.close()
        assert (tmp_path / "index").read_bytes()[: struct.calcsize("<8sII")] == data[: struct.calcsize("<8sII")]


def test_an_index_that_names_files_now_gone_or_lacks_new_ones_does_no_harm(tmp_path: Path):
    tier = make_tier(tmp_path)
    parts = chain(range(30), 10)
    stored(tier, parts[:2])
    tier.close()
    stale = (tmp_path / "index").read_bytes()
    tier = make_tier(tmp_path)
    stored(tier, parts[2:])
    tier.close()
    (tmp_path / "index").write_bytes(stale)
    tier = make_tier(tmp_path)
    assert found(tier, range(30)) == 30
    tier.close()
    (tmp_path / f"{parts[1].key}.segment").unlink()
    tier = make_tier(tmp_path)
    assert found(tier, range(30)) == 10 and tier.load(parts[1].key) is None
    tier.close()


def test_a_parent_that_is_no_key_is_not_read_although_its_checksums_are_right(tmp_path: Path):
    prepared = prepare(Segment("ee", 0, (1, 2), {}, {}))
    place = tmp_path / f"{prepared.record.key}.segment"
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT)
    write_prepared(descriptor, prepared, lambda: None)
    os.close(descriptor)
    with pytest.raises(Damaged):
        read_record(place)


def test_a_ledger_of_foreign_lines_does_no_harm(tmp_path: Path):
    (tmp_path / "writes").write_bytes(b"\xff\xfe\n1e9\nnan -5\n-1 -99999999999\ninf 7\n3 4 5\nhalf a li")
    tier = make_tier(tmp_path, hourly=10_000)
    stored(tier, [segment(range(5))])
    assert found(tier, range(5)) == 5
    tier.close()
    (tmp_path / "writes").write_bytes(b"1000000000 -99999999999\n")
    tier = make_tier(tmp_path, hourly=100, clock=lambda: 1e9)
    stored(tier, [segment(range(6))])
    assert found(tier, range(6)) == 5
    tier.close()


def test_a_folder_deleted_while_running_is_a_miss_and_is_made_again(tmp_path: Path):
    folder = tmp_path / "prefix"
    tier = make_tier(folder)
    parts = chain(range(30), 10)
    stored(tier, parts)
    shutil.rmtree(folder)
    assert tier.load(parts[0].key) is None and found(tier, range(30)) == 0
    stored(tier, [parts[2]])  # nothing without what comes before it
    assert not list(folder.glob("*.segment"))
    stored(tier, parts)
    assert found(tier, range(30)) == 30 and all(same(tier.load(part.key), part) for part in parts)
    tier.close()


def test_a_file_where_the_folder_should_be_makes_the_tier_empty_and_quiet(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    place = tmp_path / "prefix"
    place.write_text("mine")
    tier = make_tier(place)
    for number in range(20):
        tier.store(segment([number] * 3))
        assert tier.match("c0" * 32, [number]) == []
    assert tier.flush(10)
    tier.clear()
    tier.close()
    assert place.read_text() == "mine" and 1 <= len(caplog.messages) <= 3


def test_a_full_device_leaves_an_error_and_no_valid_beginning(tmp_path: Path):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        write_prepared(descriptor, prepare(segment(range(5))), lambda: None)
    os.close(descriptor)


def test_a_write_given_up_half_way_has_no_valid_beginning(tmp_path: Path):
    prepared = prepare(segment(range(5), width=2**18))
    place = tmp_path / f"{prepared.record.key}.segment"
    chunks = iter(range(3))
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT)
    with pytest.raises(StopIteration):
        write_prepared(descriptor, prepared, lambda: next(chunks) and None)
    os.close(descriptor)
    assert place.stat().st_size > 2**21
    with pytest.raises(Damaged, match="not a stored prefix"):
        read_record(place)


def test_other_programs_keep_their_free_space(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    tier = make_tier(tmp_path, reserve_bytes=2**60)
    stored(tier, chain(range(30), 10))
    assert tier.nbytes == 0 and [message for message in caplog.messages if "nearly full" in message] == caplog.messages
    tier.close()
