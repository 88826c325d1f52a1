"""Memory and disk together: a new process goes on where the last one stopped, and a damaged file costs time, never text."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.prefix.cache import PrefixCache
from engine.prefix.disk import DiskTier
from engine.targets.protocol import Target
from tests.engine.prefix.targets import GRID, STATEFUL, Way, make, open_cache, prompt, run
from tests.engine.prefix.test_identity_of_text import same, target_of

FAMILIES = ["llama", "llama, 8-bit keys and values", "gemma3_text", *STATEFUL]
IDS = prompt(6 * GRID + 5)


@pytest.fixture(autouse=True)
def short_prompts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.prefix.cache.SHORT_TOKENS", 2 * GRID)


@contextmanager
def process(target: Target, folder: Path, ram_bytes: int = 2**30) -> Iterator[PrefixCache]:
    """A cache as a process has it, from its start to its end."""
    kept = open_cache(target, ram_bytes=ram_bytes, disk=DiskTier(folder, 2**30, 2**30, reserve_bytes=0))
    yield kept
    kept.close()


def stored(target: Target, folder: Path, ids: list[int] = IDS) -> Way:
    """One process's run of ``ids``."""
    with process(target, folder) as kept:
        return run(target, ids, kept)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_new_process_goes_on_from_disk_exactly(name: str, tmp_path: Path) -> None:
    target = target_of(name)
    stored(target, tmp_path)
    longer = [*IDS, *prompt(GRID, seed=1)]
    restored = stored(target, tmp_path, longer)
    assert (restored.cached, restored.source) == (6 * GRID, "disk")
    same(restored, run(target, longer))


@pytest.mark.parametrize("name", ["llama", "qwen3_5"])
def test_what_came_from_disk_is_in_memory_from_then_on(name: str, tmp_path: Path) -> None:
    target = target_of(name)
    stored(target, tmp_path)
    with process(target, tmp_path) as kept:
        assert [run(target, IDS, kept, more=0).source for _ in range(2)] == ["disk", "memory"]


@pytest.mark.parametrize("name", ["llama", "qwen3_5"])
def test_what_memory_gave_up_comes_back_from_disk(name: str, tmp_path: Path) -> None:
    target = target_of(name)
    with process(target, tmp_path) as kept:
        run(target, IDS, kept, more=0)
        kept._disk.flush(10)
        whole = kept._ram.nbytes
    with process(target, tmp_path, ram_bytes=whole // 2) as kept:
        run(target, IDS, kept, more=0)
        again = run(target, IDS, kept)
    assert again.cached == 6 * GRID and again.source in ("disk", "memory and disk")
    same(again, run(target, IDS))


@pytest.mark.parametrize("name", ["llama", "lfm2"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_damage_costs_the_rest_of_the_prefix_and_nothing_else(
    name: str, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = target_of(name)
    stored(target, tmp_path)
    files = sorted(tmp_path.glob("*.segment"), key=lambda file: file.stat().st_mtime_ns)
    content = bytearray(files[2].read_bytes())
    content[-1 if damage == "flipped" else 0] ^= damage == "flipped"
    if damage == "gone":
        files[2].unlink()
    else:
        files[2].write_bytes(content[: -20 if damage == "cut" else None])
    with caplog.at_level(logging.WARNING):
        restored = stored(target, tmp_path)
    assert restored.cached in range(0, 6 * GRID, GRID)
    same(restored, run(target, IDS))
    assert stored(target, tmp_path).cached == 6 * GRID, "and it is made good"


def test_a_prompt_quickly_made_again_is_not_written(tmp_path: Path) -> None:
    target = make("llama")
    stored(target, tmp_path, prompt(GRID + 3))
    assert not list(tmp_path.glob("*.segment"))


def test_another_pair_finds_nothing(tmp_path: Path) -> None:
    target = make("llama")
    stored(target, tmp_path)
    disk = DiskTier(tmp_path, 2**30, 2**30)
    other = PrefixCache(target, None, GRID, "77" * 32, 2**30, disk)
    assert run(target, IDS, other).cached == 0
    other.close()
