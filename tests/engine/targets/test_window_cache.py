"""The window cache against its definition: whatever was appended and taken back, a token sees exactly its window."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import RotatingKVCache

from engine.targets import window_cache
from engine.targets.window_cache import WindowCache

STEPS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=30)


def rows(values: list[float]) -> mx.array:
    """One head of size 2 whose rows say which token they are."""
    return mx.array(values, dtype=mx.float32)[None, None, :, None] * mx.array([1.0, -1.0])


def tokens(array: mx.array) -> list[float]:
    return array[0, 0, :, 0].tolist()


def seen(cache: WindowCache, fresh: list[float], window_size: int | None = None) -> list[list[float]]:
    """Appends ``fresh``; for each of them the tokens that mask and rows together let it see."""
    mask = cache.make_mask(len(fresh), window_size=window_size)
    keys, values = cache.update_and_fetch(rows(fresh), rows([value + 0.5 for value in fresh]))
    held = tokens(keys)
    assert tokens(values) == [value + 0.5 for value in held]
    if isinstance(mask, mx.array):
        allowed = mx.broadcast_to(mask, (len(fresh), len(held))).tolist()
    else:
        assert mask == "causal" or (mask is None and len(fresh) == 1)
        allowed = [[place <= len(held) - len(fresh) + row for place in range(len(held))] for row in range(len(fresh))]
    return [[token for token, yes in zip(held, row, strict=True) if yes] for row in allowed]


@settings(max_examples=120, deadline=None)
@given(window=st.integers(1, 9), step=st.integers(1, 8), plan=STEPS)
def test_every_token_sees_its_window_whatever_was_taken_back(window: int, step: int, plan: list[tuple[int, int]]) -> None:
    """Steps and blocks of any width, each partly or wholly taken back, in buffers that fill up every few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_cache, "STEP", step)
        cache, committed, name = WindowCache(window), [], 0
        for width, taken in plan:
            fresh = [float(name + index) for index in range(width)]
            name += width
            sequence = committed + fresh
            wanted = [sequence[max(0, end - window) : end] for end in range(len(committed) + 1, len(sequence) + 1)]
            assert seen(cache, fresh) == wanted
            assert cache.trim(min(taken, width)) == min(taken, width)
            committed = sequence[: len(sequence) - min(taken, width)]
            keys, values, offset = cache.state
            assert offset == cache.offset == len(committed)
            assert tokens(keys) == committed[max(0, len(committed) - window + 1) :]
            assert tokens(values) == [value + 0.5 for value in tokens(keys)]


@settings(max_examples=60, deadline=None)
@given(window=st.integers(1, 9), widths=st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_without_taking_back_it_shows_what_mlx_lms_rotating_cache_shows(window: int, widths: list[int]) -> None:
    """The same rows for the same updates; only the rotating order of single steps differs."""
    ours, theirs, name = WindowCache(window), RotatingKVCache(window), 0
    for width in widths:
        fresh = rows([float(name + index) for index in range(width)])
        name += width
        mask, reference_mask = ours.make_mask(width, window_size=window), theirs.make_mask(width, window_size=window)
        keys, _ = ours.update_and_fetch(fresh, fresh)
        reference, _ = theirs.update_and_fetch(fresh, fresh)
        assert sorted(tokens(keys)) == sorted(tokens(reference))
        assert ours.offset == theirs.offset
        if width > 1:
            assert tokens(keys) == tokens(reference)
            same = mask == reference_mask
            assert same if isinstance(same, bool) else mx.array_equal(mask, reference_mask)


def test_a_model_may_ask_for_less_than_the_window_but_never_gets_more() -> None:
    cache = WindowCache(4)
    assert seen(cache, [0.0, 1.0, 2.0, 3.0, 4.0], window_size=2)[-1] == [3.0, 4.0]
    assert seen(cache, [5.0], window_size=2) == [[4.0, 5.0]]
    assert seen(cache, [6.0], window_size=9) == [[3.0, 4.0, 5.0, 6.0]]
    assert seen(cache, [7.0, 8.0], window_size=9) == [[4.0, 5.0, 6.0, 7.0], [5.0, 6.0, 7.0, 8.0]]


def test_taking_back_more_than_the_buffer_remembers_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_cache, "STEP", 4)
    cache = WindowCache(3)
    for token in range(20):
        seen(cache, [float(token)])
    before = tokens(cache.state[0])
    for count in (18, 21):
        with pytest.raises(ValueError, match="cannot be taken out"):
            cache.trim(count)
    assert cache.offset == 20 and tokens(cache.state[0]) == before


def test_a_saved_state_goes_on_as_the_cache_it_came_from() -> None:
    cache, copy = WindowCache(5), WindowCache(5)
    assert cache.state == (None, None, 0)
    for start in (0, 7, 14):
        seen(cache, [float(start + index) for index in range(7)])
    copy.state = cache.state
    for fresh in ([21.0], [22.0, 23.0, 24.0], [25.0]):
        assert seen(copy, fresh) == seen(cache, fresh)
    assert tokens(copy.state[0]) == tokens(cache.state[0]) == [22.0, 23.0, 24.0, 25.0]


def test_the_buffer_stays_near_the_window_and_is_seldom_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the text: blocks of 8 of which 5 are taken back, 500 times."""
    copies, copy = [], window_cache.grown
    monkeypatch.setattr(window_cache, "grown", lambda *arguments: copies.append(1) or copy(*arguments))
    cache = WindowCache(505)
    for start in range(0, 4000, 8):
        seen(cache, [float(start + index) for index in range(8)])
        cache.trim(5)
        assert cache.keys.shape[2] <= 504 + window_cache.STEP
    assert cache.offset == 1500
    assert len(copies) <= 2 * (3 + cache.offset / window_cache.STEP), "keys and values, once in a step of rows"
