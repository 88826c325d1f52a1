"""What the disk tier gives up: true LRU over leaves by last use, across restarts and clocks set back, within the byte budget."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.options import LoadOptions
from engine.prefix.opening import disk_budget
from engine.prefix.segment import Segment
from tests.engine.prefix.disk_segments import chain, found, make_tier, segment, stored

WIDTH = 1000  # a segment of ten tokens takes 40,000 bytes and a little
SMALL, LARGE = 45_056, 122_880  # at least what ten tokens of this width, and of three times this width, take in blocks of 4,096


def size_of(folder: Path) -> int:
    """Bytes on disk of one segment of ten tokens."""
    tier = make_tier(folder)
    stored(tier, [segment(range(10), width=WIDTH)])
    held = tier.nbytes
    tier.close()
    return held


def test_the_budget_holds_real_bytes_on_disk_and_the_longest_unused_goes_first(tmp_path: Path):
    size = size_of(tmp_path / "one")
    folder = tmp_path / "real"
    tier = make_tier(folder, budget=4 * size)
    chats = [segment([n] * 10, width=WIDTH) for n in range(6)]
    stored(tier, chats[:4])
    assert tier.load(chats[0].key) is not None
    stored(tier, [chats[1]])  # there already: counts as used
    stored(tier, chats[4:])
    assert [found(tier, [n] * 10) for n in range(6)] == [10, 10, 0, 0, 10, 10]
    on_disk = sum(512 * file.stat().st_blocks for file in folder.glob("*.segment"))
    assert on_disk <= 4 * size and tier.nbytes >= on_disk
    tier.close()


def test_last_use_survives_a_restart_with_and_without_the_index(tmp_path: Path):
    size = size_of(tmp_path / "one")
    chats = [segment([n] * 10, width=WIDTH) for n in range(6)]
    tier = make_tier(tmp_path / "real", budget=4 * size)
    stored(tier, chats[:4])
    assert tier.load(chats[0].key) is not None
    tier.close()
    tier = make_tier(tmp_path / "real", budget=4 * size)
    stored(tier, [chats[4]])
    tier.close()
    (tmp_path / "real" / "index").unlink()
    tier = make_tier(tmp_path / "real", budget=4 * size)
    stored(tier, [chats[5]])
    assert [found(tier, [n] * 10) for n in range(6)] == [10, 0, 0, 10, 10, 10]
    tier.close()


def test_a_shared_beginning_outlives_its_branches_and_using_a_leaf_uses_its_path(tmp_path: Path):
    size = size_of(tmp_path / "one")
    tier = make_tier(tmp_path / "real", budget=4 * size)
    root = segment([0] * 10, width=WIDTH)
    old, new = (segment([n] * 10, root, width=WIDTH) for n in (1, 2))
    stored(tier, [root, old, new, segment([8] * 10, width=WIDTH)])
    stored(tier, [old])
    stored(tier, [segment([9] * 10, width=WIDTH)])
    assert found(tier, [0] * 10 + [1] * 10) == 20 and found(tier, [0] * 10 + [2] * 10) == 10
    assert tier.load(old.key) is not None
    stored(tier, [segment([n] * 10, width=WIDTH) for n in (11, 12)])
    assert found(tier, [0] * 10 + [1] * 10) == 20 and found(tier, [8] * 10) == found(tier, [9] * 10) == 0
    stored(tier, [segment([13] * 10, width=WIDTH)])
    assert found(tier, [0] * 10 + [1] * 10) == 10  # of the longest unused path the leaf goes first
    stored(tier, [segment([14] * 10, width=WIDTH)])
    assert [found(tier, [n] * 10) for n in (0, 11, 12, 13, 14)] == [0, 10, 10, 10, 10]
    tier.close()


def test_using_a_leaf_alone_keeps_those_before_it_too(tmp_path: Path):
    size = size_of(tmp_path / "one")
    now = [1.8e9]
    tier = make_tier(tmp_path / "real", budget=3 * size, clock=lambda: now[0])
    root = segment([0] * 10, width=WIDTH)
    leaf = segment([1] * 10, root, width=WIDTH)
    stored(tier, [root, leaf])
    for use in (lambda: stored(tier, [segment([8] * 10, width=WIDTH)]), lambda: tier.load(leaf.key)):
        now[0] += 10
        use()
    now[0] += 10
    stored(tier, [segment([9] * 10, width=WIDTH)])
    stored(tier, [segment([10] * 10, width=WIDTH)])
    assert [found(tier, [n] * 10) for n in (0, 8, 9, 10)] == [10, 0, 10, 10]
    tier.close()


def test_a_new_leaf_never_costs_those_before_it(tmp_path: Path):
    size = size_of(tmp_path / "one")
    tier = make_tier(tmp_path / "real", budget=3 * size)
    parts = chain(range(50), 10, width=WIDTH)
    stored(tier, parts)
    assert found(tier, range(50)) == 30 and tier.nbytes <= 3 * size
    tier.close()


def test_files_of_no_use_go_before_any_other(tmp_path: Path):
    size = size_of(tmp_path / "one")
    folder = tmp_path / "real"
    tier = make_tier(folder)
    parts = chain(range(30), 10, width=WIDTH)
    other = segment([7] * 10, width=WIDTH)
    stored(tier, [other, *parts])
    tier.close()
    (folder / f"{parts[0].key}.segment").write_bytes(b"spoilt" * 7_000)
    (folder / "index").unlink()
    tier = make_tier(folder, budget=4 * size)
    stored(tier, [segment([n] * 10, width=WIDTH) for n in (11, 12, 13)])
    assert [found(tier, [n] * 10) for n in (7, 11, 12, 13)] == [10] * 4
    assert tier.load(parts[1].key) is None and tier.load(parts[2].key) is None
    tier.close()


def test_what_follows_a_lost_segment_is_found_again_once_that_is_stored_again(tmp_path: Path):
    tier = make_tier(tmp_path)
    parts = chain(range(30), 10)
    stored(tier, parts)
    (tmp_path / f"{parts[0].key}.segment").unlink()
    assert found(tier, range(30)) == 0
    stored(tier, parts[:1])
    assert found(tier, range(30)) == 30
    tier.close()


@pytest.mark.parametrize("back", [10.0, 10 * 365 * 86_400.0])
def test_a_clock_set_back_neither_removes_what_is_fresh_nor_keeps_what_is_old(tmp_path: Path, back: float):
    size = size_of(tmp_path / "one")
    now = [1.8e9]
    chats = [segment([n] * 10, width=WIDTH) for n in range(6)]
    tier = make_tier(tmp_path / "real", budget=3 * size, clock=lambda: now[0])
    stored(tier, chats[:3])
    now[0] -= back
    stored(tier, chats[3:4])
    tier.close()
    tier = make_tier(tmp_path / "real", budget=3 * size, clock=lambda: now[0])
    assert tier.load(chats[2].key) is not None
    stored(tier, chats[4:6])
    assert [found(tier, [n] * 10) for n in range(6)] == [0, 0, 10, 0, 10, 10]
    tier.close()


def test_a_clock_set_back_keeps_the_hourly_limit_for_no_longer_than_an_hour(tmp_path: Path):
    now = [1.8e9]
    tier = make_tier(tmp_path, hourly=45_000, clock=lambda: now[0])
    stored(tier, [segment([1] * 10, width=WIDTH), segment([2] * 10, width=WIDTH)])
    assert found(tier, [1] * 10) == 10 and found(tier, [2] * 10) == 0
    now[0] -= 600
    stored(tier, [segment([2] * 10, width=WIDTH)])
    assert found(tier, [2] * 10) == 0
    now[0] -= 3_600
    stored(tier, [segment([2] * 10, width=WIDTH)])
    assert found(tier, [2] * 10) == 10
    tier.close()


def test_another_tiers_files_and_uses_are_noticed(tmp_path: Path):
    size = size_of(tmp_path / "one")
    here, there = (make_tier(tmp_path / "real", budget=3 * size) for _ in range(2))
    chats = [segment([n] * 10, width=WIDTH) for n in range(5)]
    stored(here, chats[:2])
    stored(there, chats[2:3])
    assert found(here, [2] * 10) == 10
    assert there.load(chats[0].key) is not None
    stored(here, chats[3:4])
    assert [found(there, [n] * 10) for n in range(4)] == [10, 0, 10, 10]
    assert there.load(chats[1].key) is None
    here.close()
    there.close()


STEPS = st.lists(st.one_of(st.tuples(st.integers(0, 12), st.booleans()), st.none()), min_size=1, max_size=30)


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_whatever_is_stored_used_or_restarted_the_last_used_paths_that_fit_are_there(
    tmp_path_factory: pytest.TempPathFactory, steps
):
    """A model of thirteen paths (three roots, each with three leaves, and a large segment) that keeps the last used ones."""
    folder = tmp_path_factory.mktemp("lru")
    roots = [segment([root] * 10, width=WIDTH) for root in range(3)]
    paths: list[list[Segment]] = [[root] for root in roots]
    paths += [[root, segment([10 + leaf] * 10, root, width=WIDTH)] for root in roots for leaf in range(3)]
    paths.append([segment([9] * 10, width=3 * WIDTH)])
    budget = 4 * SMALL
    sizes = {part.key: SMALL if part.nbytes < SMALL else LARGE for path in paths for part in path}
    tier = make_tier(folder, budget=budget)
    uses: dict[int, int] = {}
    for number, step in enumerate(steps):
        if step is None:
            tier.close()
            tier = make_tier(folder, budget=budget)
            continue
        path, by_loading = step
        loaded = [tier.load(part.key) for part in paths[path]] if by_loading else [None]
        if None in loaded:
            stored(tier, paths[path])
        uses[path] = number
    kept: set[str] = set()
    for path in sorted(uses, key=lambda path: -uses[path]):
        wanted = kept | {part.key for part in paths[path]}
        if sum(sizes[key] for key in wanted) > budget:
            break
        kept = wanted
    there = {file.stem for file in folder.glob("*.segment")}
    assert kept <= there and tier.nbytes <= budget
    assert tier.nbytes == sum(max(os.stat(file).st_size, 512 * os.stat(file).st_blocks) for file in folder.glob("*.segment"))
    parents = {part.key: part.parent for path in paths for part in path}
    assert all(parents[key] in there or parents[key] == "c0" * 32 for key in there)
    tier.close()


def test_a_file_that_another_process_takes_away_does_not_turn_the_disk_tier_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While what is there is added up; a link to nothing is listed and not there either."""
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=10**9))
    (tmp_path / "kept").write_bytes(bytes(1000))
    (tmp_path / ".gone.partial").symlink_to(tmp_path / "nowhere")
    assert disk_budget(LoadOptions(), tmp_path) == (10**9 + 1000) // 10
