"""Going on after a kept prefix is going on from the start: the same passes, logits to the bit and tokens, for all caches."""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import mlx.core as mx
import pytest

from engine.prefix.cache import NO_STATE, NOTHING
from engine.targets.protocol import Target
from tests.engine.prefix.targets import GRID, QUANTISED, ROWS_ONLY, STATEFUL, Way, make, open_cache, prompt, run

FAMILIES = [*ROWS_ONLY, *STATEFUL]
KINDS = ["llama", "gemma3_text", QUANTISED, "qwen3_5"]  # one for each kind of cache
target_of = cache(make)


def at_every(places: list[int], corners: list[int]) -> list[object]:
    """Every family at ``corners`` and one of each kind at all ``places``; the others there are for the long run."""
    slow = {(name, place) for name in FAMILIES if name not in KINDS for place in places if place not in corners}
    cases = product(FAMILIES, places)
    return [pytest.param(*case, marks=[pytest.mark.slow] if case in slow else []) for case in cases]


def same(restored: Way, cold: Way) -> None:
    assert restored.tokens == cold.tokens
    assert mx.array_equal(restored.logits, cold.logits).item(), "not the same bits"


def revisit(target: Target, first: list[int], second: list[int], boundaries: list[int] = ()) -> Way:
    """``second`` after ``first`` was kept, checked against ``second`` from the start."""
    kept = open_cache(target)
    run(target, first, kept, boundaries, more=0)
    restored, cold = run(target, second, kept), run(target, second)
    same(restored, cold)
    assert sum(restored.passes) == len(second) - restored.cached
    return restored


@pytest.mark.parametrize(
    ("name", "length"),
    at_every([GRID, GRID + 1, GRID + 2, 3 * GRID - 1, 3 * GRID, 3 * GRID + 1, 5 * GRID + 7], corners=[GRID + 1, 5 * GRID + 7]),
)
def test_the_same_prompt_again_runs_only_what_follows_its_last_whole_block(name: str, length: int) -> None:
    ids = prompt(length)
    restored = revisit(target_of(name), ids, ids)
    assert restored.cached == (length - 1) // GRID * GRID
    assert restored.source == ("memory" if length > GRID else f"the prompt is shorter than a block of {GRID} tokens")


@pytest.mark.parametrize(
    ("name", "place"),
    at_every([0, 1, GRID - 1, GRID, GRID + 1, 2 * GRID, 3 * GRID + 5, 4 * GRID - 1], corners=[GRID - 1, GRID, 3 * GRID + 5]),
)
def test_an_edit_keeps_the_whole_blocks_before_it(name: str, place: int) -> None:
    """Where states are needed, the edit is at a boundary, as the chat template gives them."""
    ids = prompt(5 * GRID)
    edited = [*ids[:place], (ids[place] + 1) % 100, *prompt(2 * GRID, seed=1)]
    restored = revisit(target_of(name), ids, edited, [place])
    assert restored.cached == place // GRID * GRID
    assert restored.source == ("memory" if place >= GRID else NOTHING)


@pytest.mark.parametrize("name", STATEFUL)
def test_without_a_state_before_the_edit_nothing_is_reused_and_the_reason_says_so(name: str) -> None:
    ids = prompt(5 * GRID)
    restored = revisit(target_of(name), ids, [*ids[: 3 * GRID], *prompt(GRID, seed=1)])
    assert (restored.cached, restored.source) == (0, NO_STATE)


@pytest.mark.parametrize("name", STATEFUL)
def test_a_long_prompt_keeps_states_between_its_boundaries(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.prefix.recording.STATE_EVERY", 2 * GRID)
    ids = prompt(7 * GRID)
    assert revisit(target_of(name), ids, [*ids[: 5 * GRID + 3], *prompt(GRID, seed=1)]).cached == 4 * GRID


@pytest.mark.parametrize("name", FAMILIES)
def test_branches_share_their_beginning_and_each_goes_on_exactly(name: str) -> None:
    target, kept, stem = target_of(name), open_cache(target_of(name)), prompt(3 * GRID + 4)
    for seed in range(1, 4):
        branch = stem + prompt(2 * GRID, seed)
        first = run(target, branch, kept, [len(stem)])
        assert first.cached == (0 if seed == 1 else 3 * GRID)
        same(first, run(target, branch))
    longer = stem + prompt(2 * GRID, 2) + prompt(GRID, 9)
    again = run(target, longer, kept)
    assert again.cached >= 4 * GRID
    same(again, run(target, longer))


def sweep(cases: int, seed: int) -> int:
    """Chats that grow and are edited at random, over all kinds of caches, the last prompt against a cold run. How many hit."""
    chosen = random.Random(seed)
    hits = 0
    for number in range(cases):
        target = target_of(FAMILIES[number % len(FAMILIES)])
        kept = open_cache(target)
        ids = prompt(chosen.randrange(GRID, 6 * GRID), seed=chosen.random())
        for _ in range(2):
            run(target, ids, kept, [chosen.randrange(len(ids))], more=0)
            cut = chosen.choice([len(ids), chosen.randrange(1, len(ids)), len(ids) // GRID * GRID])
            ids = ids[:cut] + prompt(chosen.randrange(1, 3 * GRID), seed=chosen.random())
        restored = run(target, ids, kept)
        hits += restored.cached > 0
        same(restored, run(target, ids))
    return hits


def test_chats_that_grow_and_are_edited_go_on_exactly() -> None:
    assert sweep(len(FAMILIES), seed=1) > len(FAMILIES) // 2


@pytest.mark.slow
def test_300_chats_that_grow_and_are_edited_go_on_exactly() -> None:
    assert sweep(300, seed=2) > 150
