"""The disk tier among processes: killed, interrupted, refused by the system, and several on one folder at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.prefix.disk_segments import found, make_tier, same, segment, stored

ROOT = Path(__file__).parents[3]


def start(what: str, folder: Path, number: int = 0) -> subprocess.Popen:
    """The child program on ``folder``."""
    command = [sys.executable, "-m", "tests.engine.prefix.disk_child", what, str(folder), str(number)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(child: subprocess.Popen) -> dict:
    """What the child printed; it must have ended well and in silence."""
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    return json.loads(out)


def wait_for(condition: Callable[[], bool], child: subprocess.Popen) -> None:
    """Until ``condition``; fails when the child ends before."""
    deadline = time.monotonic() + 120
    while not condition():
        assert child.poll() is None and time.monotonic() < deadline, child.communicate()
        time.sleep(0.002)


def partials(folder: Path) -> list[Path]:
    """Files that are being written, or were."""
    return list(folder.glob(".*.partial"))


@pytest.mark.parametrize("after_s", [0.0, 0.02])
def test_a_kill_at_any_moment_leaves_whole_segments_or_none(tmp_path: Path, after_s: float):
    child = start("endless", tmp_path)
    wait_for(lambda: len(list(tmp_path.glob("*.segment"))) >= 2 and bool(partials(tmp_path)), child)
    time.sleep(after_s)
    child.kill()
    child.communicate()
    tier = make_tier(tmp_path)
    whole = [segment([token] * 8, width=2**17) for token in range(len(list(tmp_path.glob("*.segment"))))]
    assert len(whole) >= 2 and all(same(tier.load(part.key), part) for part in whole)
    assert partials(tmp_path) == []
    stored(tier, [segment([900] * 8)])
    assert found(tier, [900] * 8) == 8
    tier.close()


def test_what_another_process_is_writing_is_not_swept(tmp_path: Path):
    child = start("slow", tmp_path, 5)
    wait_for(lambda: any(part.stat().st_size for part in partials(tmp_path)), child)  # it is locked before its first byte
    left = tmp_path / ".left.segment.0123.partial"
    left.write_bytes(b"of a writer long gone")
    tier = make_tier(tmp_path)
    assert not left.exists() and len(partials(tmp_path)) == 1
    (tmp_path / "go").touch()
    _, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert found(tier, [5] * 8) == 8
    tier.close()


def test_processes_that_write_and_evict_at_once_stay_near_the_budget_and_never_read_wrong_data(tmp_path: Path):
    children = [start("share", tmp_path, number) for number in (1, 2)]
    results = [result(child) for child in children]
    assert all(one["right"] > 10 for one in results)
    # Each process may be writing one segment that the other has not seen.
    assert max(one["most"] for one in results) <= 2_000_000 + 2 * 45_056
    tier = make_tier(tmp_path, budget=2_000_000)
    assert tier.nbytes > 1_000_000 and partials(tmp_path) == []
    tier.close()


def test_a_full_disk_costs_one_line_and_leaves_nothing_half_written(tmp_path: Path):
    outcome = result(start("cramped", tmp_path, 100_000))
    assert outcome["tries"] == 1 and outcome["loads"] and outcome["names"] == sorted(["writes", outcome["small"] + ".segment"])
    assert [line.startswith("There is no room left for") for line in outcome["lines"]] == [True]


def test_a_read_only_folder_still_answers_and_goes_quiet(tmp_path: Path):
    tier = make_tier(tmp_path)
    stored(tier, [segment([1] * 4), segment([2] * 4)])
    tier.close()
    outcome = result(start("read_only", tmp_path))
    assert outcome["loads"] and outcome["barred"] and outcome["found"] == 4 and outcome["counted"] and outcome["untouched"]
    assert len([line for line in outcome["lines"] if "cannot be written" in line]) == 1
    assert len(outcome["lines"]) <= 4, outcome["lines"]


def test_what_a_program_stored_last_is_written_although_it_ends_without_closing(tmp_path: Path):
    child = start("unclosed", tmp_path, 20)
    assert child.communicate(timeout=120)[1] == "" and child.returncode == 0
    tier = make_tier(tmp_path)
    assert all(found(tier, [token] * 8) == 8 for token in range(20)) and (tmp_path / "index").exists()
    tier.close()


def test_an_interrupted_close_still_ends_soon_and_leaves_only_whole_files(tmp_path: Path, request: pytest.FixtureRequest):
    child = start("hopeless", tmp_path, 10)
    request.addfinalizer(lambda: (child.kill(), child.communicate()))
    assert child.stdout is not None and child.stdout.readline() == "closing\n"
    wait_for(lambda: bool(list(tmp_path.glob("*.segment"))), child)
    child.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, err = child.communicate(timeout=30)
    assert time.monotonic() - begun < 20 and "KeyboardInterrupt" in err
    files = list(tmp_path.glob("*.segment"))
    assert 0 < len(files) < 10 and partials(tmp_path) == []
    tier = make_tier(tmp_path)
    assert all(tier.load(file.stem) is not None for file in files)
    tier.close()
