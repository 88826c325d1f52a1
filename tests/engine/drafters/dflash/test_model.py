"""The draft's forward against the NumPy definition beside this file, in every mask it can have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.drafters.dflash.context import STEP, ContextCache
from engine.drafters.dflash.drafter import DFlashDrafter, DFlashSession
from engine.drafters.dflash.loading import load_draft
from engine.drafters.dflash.model import DFlashModel
from engine.targets.protocol import TargetShape
from tests.engine.drafters.dflash.reference import Reference
from tests.engine.tiny import draft_config, draft_weights, target_config, write_draft

TARGET = target_config()
SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)
FULL, SLIDING = "full_attention", "sliding_attention"
CLOSE = {"rtol": 0, "atol": 2e-4}
# name: config changes, what they mean
MASKS: dict[str, tuple[dict[str, Any], tuple[bool, ...], tuple[int | None, ...]]] = {
    "full": ({}, (False, False), (None, None)),
    "causal": ({"is_causal": True}, (True, True), (None, None)),
    "sliding": ({"layer_types": [SLIDING, FULL], "sliding_window": 7}, (True, False), (7, None)),
    "sliding, both ways": ({"layer_types": [SLIDING] * 2, "sliding_window": 7, "is_causal": False}, (False, False), (7, 7)),
    "window shorter than the block": ({"layer_types": [FULL, SLIDING], "sliding_window": 3}, (False, True), (None, 3)),
}


class Borrowed:
    """An embedding and a head of a target's size, both random."""

    def __init__(self) -> None:
        self.table = np.random.default_rng(2).normal(size=(160, 32)).astype(np.float32)
        self.rows = np.random.default_rng(3).normal(size=(160, 32)).astype(np.float32)

    def embed(self, ids: mx.array) -> mx.array:
        return mx.array(self.table)[ids]

    def head(self, hidden: mx.array) -> mx.array:
        return hidden @ mx.array(self.rows).T

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        return lambda hidden: hidden @ mx.array(self.rows)[ids].T


VOCABULARY = Borrowed()


def make(folder: Path, name: str) -> tuple[DFlashModel, Reference]:
    changes, causal, windows = MASKS[name]
    model = load_draft(write_draft(folder / "draft", TARGET, **changes), SHAPE, None)
    config = draft_config(TARGET, **changes)
    return model, Reference.of(config, draft_weights(config), causal, windows)


@pytest.fixture
def full(tmp_path: Path) -> tuple[DFlashModel, Reference]:
    return make(tmp_path, "full")


def random_taps(rows: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 64)).astype(np.float32)


def session_of(model: DFlashModel, block_length: int = 6) -> DFlashSession:
    return DFlashDrafter(model, VOCABULARY, "draft", block_length).session()


def fed(session: DFlashSession, taps: np.ndarray, pieces: list[int]) -> DFlashSession:
    """Gives ``taps`` to prefill in ``pieces``."""
    position = 0
    for size in pieces:
        mx.eval(session.prefill(mx.array(taps[position : position + size]), position))
        position += size
    assert position == len(taps)
    return session


def propose(session: DFlashSession, anchor: int, rows: np.ndarray | None, position: int, length: int = 5) -> list[int]:
    ids = session.propose(mx.array([anchor]), None if rows is None else mx.array(rows), position, length, [])
    assert ids is not None
    return ids.tolist()


def expected_proposals(reference: Reference, taps: np.ndarray, anchor: int, length: int = 5) -> list[int]:
    """Slot k proposes the token k places after the anchor: slot 0 is not read."""
    hidden = reference.block(VOCABULARY.table[[anchor] + [5] * length].astype(np.float64), taps.astype(np.float64))
    return np.argmax(hidden[1:] @ VOCABULARY.rows.T, axis=-1).tolist()


def test_what_draws_the_proposals_is_given_the_logits_and_the_position_of_the_first(full: tuple[DFlashModel, Reference]) -> None:
    model, reference = full
    taps, asked = random_taps(12), []

    def second_best(logits: mx.array, position: int, ids: mx.array | None) -> mx.array:
        asked.append((logits.shape, position, ids))
        return mx.argsort(-logits, axis=-1)[:, 1]

    session = fed(DFlashDrafter(model, VOCABULARY, "draft", 6).session(second_best), taps[:11], [11])
    hidden = reference.block(VOCABULARY.table[[9] + [5] * 5].astype(np.float64), taps.astype(np.float64))
    expected = np.argsort(-(hidden[1:] @ VOCABULARY.rows.T), axis=-1)[:, 1].tolist()
    assert propose(session, 9, taps[11:], 12) == expected
    assert asked == [((5, len(VOCABULARY.rows)), 13, None)]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("context", [1, 4, 23])
def test_block_states_equal_the_definition(tmp_path: Path, name: str, context: int) -> None:
    model, reference = make(tmp_path, name)
    taps, block = random_taps(context), VOCABULARY.table[[9, 5, 5, 5, 5, 5]]
    found = model(mx.array(block), model.features(mx.array(taps)), model.make_context(), context)
    np.testing.assert_allclose(np.array(found), reference.block(block.astype(np.float64), taps.astype(np.float64)), **CLOSE)


@pytest.mark.parametrize("name", MASKS)
def test_proposals_equal_the_definition_cycle_after_cycle(tmp_path: Path, name: str) -> None:
    model, reference = make(tmp_path, name)
    taps, seen = random_taps(40), 11
    session = fed(session_of(model), taps[:seen], [seen])
    for anchor, committed in ((9, 1), (31, 6), (77, 1), (0, 3), (159, 6), (4, 2)):
        seen += committed
        assert propose(session, anchor, taps[seen - committed : seen], seen) == expected_proposals(reference, taps[:seen], anchor)


def test_features_equal_the_definition(full) -> None:
    model, reference = full
    taps = random_taps(5)
    np.testing.assert_allclose(np.array(model.features(mx.array(taps))), reference.features(taps.astype(np.float64)), **CLOSE)


def test_features_survive_activations_that_overflow_half_precision(full) -> None:
    model, reference = full
    model.set_dtype(mx.float16)
    taps = np.sign(random_taps(2)) * np.array([[60_000.0], [1.0]], dtype=np.float32)
    assert np.abs(taps.astype(np.float64) @ reference.weights["fc.weight"].T).max() > 65504, "nothing would overflow"
    found = np.array(model.features(mx.array(taps).astype(mx.float16)).astype(mx.float32))
    np.testing.assert_allclose(found, reference.features(taps.astype(np.float64)), rtol=0, atol=0.02)


def test_context_rows_do_not_pass_the_input_norm(full) -> None:
    """Changing only that norm must leave the stored context alone, though it changes what the block sees."""
    model, _ = full
    features = model.features(mx.array(random_taps(4)))
    held = [model.layers[layer].self_attn.keys_values(features, 0) for layer in range(2)]
    before, after = model.make_context(), model.make_context()
    model.add_context(features, before, 0)
    model.layers[0].input_layernorm.weight = model.layers[0].input_layernorm.weight * 3
    model.add_context(features, after, 0)
    for layer in range(2):
        keys, values = stored(after, layer)
        assert mx.array_equal(keys, stored(before, layer)[0]) and mx.array_equal(values, stored(before, layer)[1])
        assert mx.array_equal(keys, held[layer][0]) and mx.array_equal(values, held[layer][1])


def stored(context: ContextCache, layer: int) -> tuple[mx.array, mx.array]:
    """The context rows a layer holds."""
    keys, values = context.arrays()[layer], context.arrays()[layer + 2]
    return keys[..., : context.rows(layer), :], values[..., : context.rows(layer), :]


def test_context_keys_are_normed_and_rotated_at_their_absolute_positions(full) -> None:
    model, reference = full
    taps, start = random_taps(3), 41
    context = model.make_context()
    model.add_context(model.features(mx.array(taps)), context, start)
    rows = reference.features(taps.astype(np.float64))
    for layer in range(2):
        prefix = f"layers.{layer}.self_attn."
        keys = reference.norm(reference.split(rows, prefix + "k_proj.weight", 2), prefix + "k_norm.weight")
        values = reference.split(rows, prefix + "v_proj.weight", 2)
        found_keys, found_values = (np.array(array[0]).transpose(1, 0, 2) for array in stored(context, layer))
        np.testing.assert_allclose(found_keys, reference.rotate(keys, start), **CLOSE)
        np.testing.assert_allclose(found_values, values, **CLOSE)


@pytest.mark.parametrize("pieces", [[20], [1] * 20, [7, 1, 12], [19, 1]])
def test_the_context_is_the_same_however_it_is_fed(full, pieces: list[int]) -> None:
    model, reference = full
    taps = random_taps(21)
    session = fed(session_of(model), taps[:20], pieces)
    assert propose(session, 9, taps[20:], 21) == expected_proposals(reference, taps, 9)


@pytest.mark.parametrize("name", MASKS)
def test_block_rows_never_influence_a_later_cycle(tmp_path: Path, name: str) -> None:
    """Two sessions that saw the same committed rows but quite different blocks agree bit for bit ever after."""
    model, _ = make(tmp_path, name)
    taps = random_taps(20)
    first, second = (fed(session_of(model), taps[:10], [10]) for _ in range(2))
    propose(first, 3, taps[10:11], 11, length=5)
    propose(second, 150, taps[10:11], 11, length=2)
    for session in (first, second):
        mx.eval(session.prefill(mx.array(taps[11:13]), 11))
    block = mx.array(VOCABULARY.table[[9, 5, 5]])
    states = [model(block, model.features(mx.array(taps[13:15])), session._context, 15) for session in (first, second)]
    assert mx.array_equal(*states)


def test_asking_for_nothing_still_takes_the_committed_rows(full) -> None:
    model, reference = full
    taps = random_taps(9)
    session = fed(session_of(model), taps[:5], [5])
    assert session.propose(mx.array([9]), mx.array(taps[5:7]), 7, 0, []) is None
    assert propose(session, 8, taps[7:9], 9) == expected_proposals(reference, taps, 8)


def test_a_shorter_block_is_the_same_model_with_fewer_masks(full) -> None:
    model, reference = full
    taps = random_taps(6)
    for length in (1, 2, 5):
        session = fed(session_of(model), taps[:5], [5])
        assert propose(session, 9, taps[5:], 6, length) == expected_proposals(reference, taps, 9, length)


def test_queries_come_from_the_block_only(full) -> None:
    model, _ = full
    rows_seen: list[int] = []

    class Recorded(type(model.layers[0].self_attn.q_proj)):
        def __call__(self, x: mx.array) -> mx.array:
            rows_seen.append(x.shape[0])
            return super().__call__(x)

    for layer in model.layers:
        layer.self_attn.q_proj.__class__ = Recorded
    block, features = mx.array(VOCABULARY.table[[9, 5, 5]]), model.features(mx.array(random_taps(30)))
    mx.eval(model(block, features, model.make_context(), 30))
    assert rows_seen == [3, 3]


def test_sessions_of_one_drafter_share_no_state(full) -> None:
    model, reference = full
    drafter = DFlashDrafter(model, VOCABULARY, "draft", 6)
    mine, other = random_taps(6), random_taps(6, seed=8)
    first, second = fed(drafter.session(), mine[:5], [5]), fed(drafter.session(), other[:5], [5])
    assert propose(first, 9, mine[5:], 6) == expected_proposals(reference, mine, 9)
    assert propose(second, 9, other[5:], 6) == expected_proposals(reference, other, 9)


def test_a_long_answer_keeps_its_context_through_every_growth_of_the_buffers(full) -> None:
    model, reference = full
    taps = random_taps(2 * STEP + 9)
    session = fed(session_of(model), taps[:-1], [STEP - 3, 2, 5, STEP - 4, 8])
    assert propose(session, 9, taps[-1:], len(taps)) == expected_proposals(reference, taps, 9)
