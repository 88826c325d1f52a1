"""The disk tier: what is stored comes back bit for bit, is found by its tokens, and stays within its budgets."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import mlx.core as mx
import pytest

from engine.prefix.disk_writer import Writer
from engine.prefix.segment import Segment
from tests.engine.prefix.disk_segments import CONTENT, chain, found, make_tier, same, segment, stored


def test_arrays_of_every_kind_come_back_bit_for_bit_after_a_restart(tmp_path: Path):
    wide = mx.random.normal((7, 12))
    whole = Segment(
        CONTENT,
        0,
        tuple(range(7)),
        {
            "float32": wide,
            "bfloat16": wide.astype(mx.bfloat16),
            "float16": wide.astype(mx.float16),
            "uint32": mx.arange(21, dtype=mx.uint32).reshape(7, 3),
            "every other column": wide[:, ::2],
            "turned": mx.random.normal((12, 7)).T,
            "turned bfloat16": mx.random.normal((5, 7, 2)).astype(mx.bfloat16).transpose(1, 0, 2),
        },
        {
            "int64": mx.array([-1, 2**40], dtype=mx.int64),
            "bool": mx.array([True, False, True]),
            "scalar": mx.array(0.1, dtype=mx.bfloat16),
            "empty": mx.zeros((0, 4)),
            "not a number": mx.array([float("nan"), float("-inf"), -0.0]),
        },
    )
    mx.eval(whole.rows, whole.state)
    first = make_tier(tmp_path)
    stored(first, [whole])
    first.close()
    again = make_tier(tmp_path)
    assert same(again.load(whole.key), whole)
    again.close()


def test_the_longest_stored_beginning_is_found_to_the_token(tmp_path: Path):
    tier = make_tier(tmp_path)
    text = list(range(100, 150))
    parts = chain(text, 20)
    branch = chain([*text[20:30], *range(900, 910)], 20, after=parts[0])
    stored(tier, [*parts, *branch])
    assert [(m.key, m.tokens, m.whole) for m in tier.match(CONTENT, text[:45])] == [
        (parts[0].key, 20, True),
        (parts[1].key, 20, True),
        (parts[2].key, 5, False),
    ]
    assert tier.match(CONTENT, [*text[:30], 900, 901, 7])[-1] == (branch[0].key, 12, False)
    assert tier.match(parts[0].key, text[20:])[0] == (parts[1].key, 20, True)
    assert found(tier, [*text, 1, 2, 3]) == 50
    assert tier.match(CONTENT, [1, 2, 3]) == [] == tier.match("d1" * 32, text)
    tier.close()


def test_where_a_boundary_is_needed_the_chain_ends_with_whole_state(tmp_path: Path):
    tier = make_tier(tmp_path)
    first = segment(range(10))
    bare = segment(range(10, 30), first, state=False)
    last = segment(range(30, 40), bare)
    stored(tier, [first, bare, last])
    assert [m.tokens for m in tier.match(CONTENT, range(40), boundary=True)] == [10, 20, 10]
    assert [m.tokens for m in tier.match(CONTENT, range(39), boundary=True)] == [10]
    assert tier.match(CONTENT, range(9), boundary=True) == []
    tier.close()


def test_what_is_there_is_not_written_again(tmp_path: Path):
    tier = make_tier(tmp_path)
    part = segment(range(10))
    stored(tier, [part])
    (file,) = tmp_path.glob("*.segment")
    before = file.stat()
    stored(tier, [part, part])
    after = file.stat()
    assert after.st_ino == before.st_ino and after.st_mtime_ns > before.st_mtime_ns
    assert len((tmp_path / "writes").read_text().splitlines()) == 1
    tier.close()


def test_only_the_user_may_read_what_is_stored(tmp_path: Path):
    folder = tmp_path / "prefix"
    folder.mkdir(mode=0o755)
    tier = make_tier(folder)
    stored(tier, [segment(range(10))])
    tier.close()
    assert folder.stat().st_mode & 0o777 == 0o700
    files = sorted(folder.iterdir())
    assert [file.name for file in files if file.suffix != ".segment"] == ["index", "writes"] and len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_clearing_leaves_no_token_behind(tmp_path: Path):
    tier = make_tier(tmp_path)
    parts = chain(range(100), 10)
    stored(tier, parts[:3])
    for part in parts[3:]:
        tier.store(part)
    tier.clear()
    assert tier.nbytes == 0 and tier.load(parts[0].key) is None
    tier.close()
    assert [file.name for file in tmp_path.iterdir()] == ["writes"]


def test_clearing_gives_up_the_write_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pause = Writer.pause
    monkeypatch.setattr(Writer, "pause", lambda self: (time.sleep(0.2), pause(self)))
    tier = make_tier(tmp_path)
    tier.store(segment(range(8), width=2**20))  # 32 chunks
    while not list(tmp_path.glob(".*.partial")):
        time.sleep(0.001)
    tier.clear()
    assert [file.name for file in tmp_path.iterdir()] == ["writes"]
    tier.close()
    assert [file.name for file in tmp_path.iterdir()] == ["writes"]


def test_closing_writes_what_waits_and_ends_the_thread(tmp_path: Path):
    tier = make_tier(tmp_path)
    parts = chain(range(100), 10)
    for part in parts:
        tier.store(part)
    tier.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "prefix-writer"]
    tier.store(segment([1, 2]))
    again = make_tier(tmp_path)
    assert found(again, range(100)) == 100 and found(again, [1, 2]) == 0
    again.close()


def test_no_more_is_written_an_hour_than_allowed_also_after_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    now = [1e9]
    size = make_probe(tmp_path / "probe")
    hourly = 3 * size + size // 2
    tier = make_tier(tmp_path / "real", hourly=hourly, clock=lambda: now[0])
    parts = [segment([n] * 10) for n in range(1, 9)]
    for part in parts[:5]:
        stored(tier, [part])
    assert [tier.load(part.key) is not None for part in parts[:5]] == [True] * 3 + [False] * 2
    assert [record.message for record in caplog.records if "within an hour" in record.message] == [caplog.messages[-1]]
    tier.close()
    now[0] += 1800
    tier = make_tier(tmp_path / "real", hourly=hourly, clock=lambda: now[0])
    stored(tier, parts[5:6])
    assert tier.load(parts[5].key) is None
    now[0] += 1801
    stored(tier, parts[5:6])
    assert tier.load(parts[5].key) is not None
    tier.close()


def make_probe(folder: Path) -> int:
    """Bytes written for a segment of ten tokens."""
    tier = make_tier(folder)
    stored(tier, [segment([1] * 10)])
    tier.close()
    return int((folder / "writes").read_text().split()[1])


def test_more_than_the_backlog_holds_is_dropped_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    size = make_probe(tmp_path / "probe")
    tier = make_tier(tmp_path / "real", backlog_bytes=size * 2)
    many = [segment([n] * 10, width=2**12) for n in range(1, 9)]
    for part in many:
        tier.store(part)
    assert tier.flush(10) and tier.nbytes == 0
    assert caplog.messages == ["A prefix is not stored: too many are waiting to be written."]
    tier.close()
