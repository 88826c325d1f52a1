"""The context cache: bounded where a window bounds it, absolute positions throughout, and never a block row kept."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.drafters.dflash.context import STEP, ContextCache
from engine.drafters.dflash.loading import load_draft
from tests.engine.drafters.dflash.packagings import FULL, SLIDING
from tests.engine.drafters.dflash.reference import Reference
from tests.engine.drafters.dflash.test_model import SHAPE, TARGET, expected_proposals, fed, propose, random_taps, session_of
from tests.engine.tiny import draft_config, draft_weights, write_draft

GROUPS, SIZE = 2, 3


def numbered(*rows: int) -> mx.array:
    """Keys whose every number is that of their row."""
    return mx.broadcast_to(mx.array(rows, dtype=mx.float32)[None, None, :, None], (1, GROUPS, len(rows), SIZE))


def numbers(array: mx.array) -> list[int]:
    assert (array == array[:, :1, :, :1]).all().item(), "a row was torn"
    return [int(value) for value in array[0, 0, :, 0].tolist()]


def add(cache: ContextCache, rows: list[int], fresh: int, layer: int = 0) -> list[int]:
    """Gives rows that are numbered by position; values are their negatives."""
    keys = numbered(*rows)
    found, values = cache.extend(layer, keys, -keys, rows[0], fresh)
    assert numbers(-values) == numbers(found)
    return numbers(found)


@pytest.mark.parametrize("limit", [None, 1, 4, 7, STEP, STEP + 1])
@pytest.mark.parametrize("block", [0, 1, 6])
def test_what_is_seen_is_the_end_of_what_was_committed_then_the_block(limit: int | None, block: int) -> None:
    cache, committed = ContextCache([limit]), 0
    for size in (5, 1, 1, 3, 6, 1, 250, 4, 1, 6, 300, 2, 1, 6):
        rows = list(range(committed, committed + size + block))
        seen = add(cache, rows, size)
        committed += size
        first = 0 if limit is None else max(0, committed - limit)
        assert seen == list(range(first, committed + block))
        assert cache.rows(0) == committed - first
        assert cache.rows(0, 2) == (committed + 2 if limit is None else min(committed - first + 2, limit))


@pytest.mark.parametrize("limit", [1, 6, 50])
def test_a_bounded_layer_never_takes_more_room_than_its_window_and_a_step(limit: int) -> None:
    cache = ContextCache([limit, None])
    for start in range(0, 2000, 5):
        for layer in range(2):
            add(cache, list(range(start, start + 11)), 5, layer)
        mx.eval(cache.arrays())
    bounded, free = cache.arrays()[0], cache.arrays()[1]
    assert bounded.shape[2] <= limit + 2 * STEP < 2000 < free.shape[2]


def test_layers_are_independent() -> None:
    cache = ContextCache([3, None])
    assert add(cache, list(range(6)), 5, layer=0) == [2, 3, 4, 5]
    assert add(cache, list(range(6)), 5, layer=1) == [0, 1, 2, 3, 4, 5]
    assert (cache.rows(0), cache.rows(1)) == (3, 5)


def test_rows_that_leave_a_gap_are_refused_unless_they_fill_the_window() -> None:
    cache = ContextCache([3, None])
    for layer in range(2):
        add(cache, [0, 1], 2, layer)
    with pytest.raises(ValueError, match="position 4 do not follow those before 2"):
        add(cache, [4, 5], 2, layer=0)
    with pytest.raises(ValueError, match="do not follow"):
        add(cache, [4, 5, 6], 3, layer=1)
    assert add(cache, [4, 5, 6], 3, layer=0) == [4, 5, 6]


def test_a_context_may_begin_anywhere() -> None:
    assert add(ContextCache([None]), [41, 42], 2) == [41, 42]


def test_rows_a_window_has_passed_already_are_not_asked_for() -> None:
    cache = ContextCache([4, None])
    assert [cache.unseen(0, fresh) for fresh in (1, 4, 5, 64)] == [0, 0, 1, 60]
    assert cache.unseen(1, 64) == 0


CASES = {
    "first causal": ({"layer_types": [SLIDING, FULL], "sliding_window": 9}, (True, False), (9, None)),
    "both ways": ({"layer_types": [SLIDING] * 2, "sliding_window": 9, "is_causal": False}, (False, False), (9, 9)),
    "window of one": ({"layer_types": [SLIDING] * 2, "sliding_window": 1, "is_causal": False}, (False, False), (1, 1)),
    "window of two": ({"layer_types": [SLIDING] * 2, "sliding_window": 2}, (True, True), (2, 2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("chunk", [1, 4, 64])
def test_long_windowed_answers_keep_to_the_definition(tmp_path: Path, name: str, chunk: int) -> None:
    """Far past the window, across growths of the buffers, whatever the chunks of the prompt."""
    changes, causal, windows = CASES[name]
    model = load_draft(write_draft(tmp_path, TARGET, **changes), SHAPE, None)
    config = draft_config(TARGET, **changes)
    reference = Reference.of(config, draft_weights(config), causal, windows)
    taps, prompt = random_taps(STEP + 90), 130
    pieces = [chunk] * (prompt // chunk) + ([prompt % chunk] if prompt % chunk else [])
    session = fed(session_of(model), taps[:prompt], pieces)
    seen, anchors = prompt, np.random.default_rng(4)
    for cycle in range(70):
        committed = 1 + cycle % 6 if seen < STEP + 80 else 1
        seen += committed
        anchor = int(anchors.integers(160))
        ids = propose(session, anchor, taps[seen - committed : seen], seen)
        if cycle % 10 == 0 or STEP - 8 < seen < STEP + 8:
            assert ids == expected_proposals(reference, taps[:seen], anchor)
        if seen >= STEP + 85:
            break
    assert seen > STEP + 8


def test_dropping_what_the_window_has_passed_changes_nothing(tmp_path: Path) -> None:
    """The same rows with the older ones never given: block states agree."""
    changes = {"layer_types": [SLIDING] * 2, "sliding_window": 9, "is_causal": False}
    model = load_draft(write_draft(tmp_path, TARGET, **changes), SHAPE, None)
    taps, block = random_taps(300), mx.random.normal((6, 32), key=mx.random.key(1))
    whole, end = model.make_context(), model.make_context()
    model.add_context(model.features(mx.array(taps)), whole, 0)
    model.add_context(model.features(mx.array(taps[280:])), end, 280)
    states = [np.array(model(block, None, context, 300)) for context in (whole, end)]
    np.testing.assert_allclose(*states, rtol=0, atol=1e-5)
