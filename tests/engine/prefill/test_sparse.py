"""A prompt read in part: every family gives what its own forward gives with the other tokens masked away, at true positions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import RequestError
from engine.prefill.chunked import Prefilled, prefill
from engine.prefill.selection import Run
from engine.prefill.sparse import sparse_prefill
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Cache, TargetShape
from engine.targets.registry import make_target
from engine.targets.sparse_cache import SparseCache
from tests.engine.prefill.masked import masked_logits
from tests.engine.targets.hybrids import hybrid
from tests.engine.targets.sliding_families import FAMILIES, UNTAPPED, WINDOW, WRAPPED, sliding_target
from tests.engine.tiny import VOCAB, build_target, target_config

NO_BIAS = {"attention_bias": False, "mlp_bias": False}
GRANITE = NO_BIAS | {
    "logits_scaling": 1.0, "attention_multiplier": 0.3, "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
}  # fmt: skip
PLAIN = {
    "llama": {}, "qwen2": {}, "qwen3": {}, "mistral": {}, "olmo2": {}, "phi3": {}, "granite": GRANITE,
    "glm4": NO_BIAS | {"partial_rotary_factor": 0.5},
}  # fmt: skip
EVERY = [*PLAIN, *FAMILIES, *UNTAPPED, *WRAPPED]
CACHES = ["llama", "gemma3_text", "gemma4_text with shared key/value layers", "plamo3"]  # one family for each way to use caches
CHUNK = 8
LENGTH = 60
IDS = [(7 * index + 3 + index // 9) % VOCAB for index in range(LENGTH)]
KEPT = [(0, 5), (9, 10), (16, 27), (31, 33), (50, LENGTH)]  # runs shorter and longer than the window of 6 and the chunk of 8


def make(name: str) -> AttentionTarget:
    """A random target of one of ``EVERY``."""
    if name not in PLAIN:
        return sliding_target(name)
    model = build_target(target_config(name, **PLAIN[name]))
    return make_target(model, name, TargetShape(32, VOCAB, 4, 2048))


@pytest.fixture(scope="module", params=EVERY)
def target(request: pytest.FixtureRequest) -> AttentionTarget:
    return make(request.param)


def mask_of(runs: Sequence[Run], length: int = LENGTH) -> np.ndarray:
    kept = np.zeros(length, bool)
    for start, stop in runs:
        kept[start:stop] = True
    return kept


def read(target: AttentionTarget, runs: Sequence[Run], ids: Sequence[int] = IDS) -> tuple[Prefilled, Cache]:
    cache = target.make_sparse_cache()
    *_, ready = sparse_prefill(target, cache, ids, runs, None, (), CHUNK, threading.Event())
    return ready, cache


def close(ours: mx.array, reference: mx.array) -> bool:
    """Equal within fp32 rounding through six random layers."""
    return mx.abs(ours - reference).max().item() <= 2e-4 * mx.abs(reference).max().item()


def test_the_logits_are_those_of_a_forward_that_masks_the_rest_away(target: AttentionTarget) -> None:
    ready, _ = read(target, KEPT)
    reference = masked_logits(target.model, IDS, mask_of(KEPT))[-1:, : target.shape.vocab_size]
    assert close(ready.logits, reference)
    whole = masked_logits(target.model, IDS, np.ones(LENGTH, bool))[-1:, : target.shape.vocab_size]
    assert not close(ready.logits, whole), "what was left out must matter here"


def test_decoding_goes_on_at_true_positions_past_the_window(target: AttentionTarget) -> None:
    """Single tokens, then blocks, until the window has left the prompt behind."""
    _, cache = read(target, KEPT)
    answer = [(11 * index + 5) % VOCAB for index in range(WINDOW + 8)]
    borders = [0, 1, 2, 3, 5, 8, len(answer)]
    rows = [target.forward(mx.array(answer[a:b]), cache).logits for a, b in pairwise(borders)]
    kept = np.concatenate([mask_of(KEPT), np.ones(len(answer), bool)])
    reference = masked_logits(target.model, IDS + answer, kept)[LENGTH:, : target.shape.vocab_size]
    assert close(mx.concatenate(rows), reference)


def test_keeping_everything_is_the_whole_prefill_bit_for_bit(target: AttentionTarget) -> None:
    ready, ours = read(target, [(0, LENGTH)])
    whole = target.make_cache()
    *_, reference = prefill(target, whole, IDS, None, (), CHUNK, threading.Event())
    assert mx.array_equal(ready.logits, reference.logits)
    steps = [mx.array([5]), mx.array([6, 7, 8]), mx.array([9])]
    pairs = [(target.forward(step, ours).logits, target.forward(step, whole).logits) for step in steps]
    assert all(mx.array_equal(mine, theirs) for mine, theirs in pairs)


def check_taken_back(target: AttentionTarget, rejected: int) -> None:
    block = mx.array([11, 22, 33, 44, 55, 66, 77, 88])
    _, cache = read(target, KEPT)
    _, reference = read(target, KEPT)
    for _ in range(3):  # once the window has passed the prompt too
        mx.eval(target.forward(block, cache).logits)
        target.rollback(cache, rejected)
        mx.eval(target.forward(block[: 8 - rejected], reference).logits)
    assert [entry.offset for entry in cache] == [entry.offset for entry in reference]
    assert close(target.forward(block, cache).logits, target.forward(block, reference).logits)


def test_a_rejected_tail_is_taken_back_exactly(target: AttentionTarget) -> None:
    check_taken_back(target, 3)


@pytest.mark.parametrize("name", [*CACHES, *(pytest.param(name, marks=pytest.mark.slow) for name in EVERY if name not in CACHES)])
@pytest.mark.parametrize("rejected", [1, 7])
def test_a_single_row_and_all_but_one_are_taken_back_exactly(name: str, rejected: int) -> None:
    check_taken_back(make(name), rejected)


def test_rows_the_window_has_passed_are_let_go(target: AttentionTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.targets.sparse_cache.STEP", 32)  # buffers grow every few passes
    _, cache = read(target, KEPT)
    for _ in range(9):
        mx.eval(target.forward(mx.array([1, 2, 3, 4, 5, 6, 7, 8]), cache).logits)
    held = {entry.window: entry.keys.shape[2] for entry in cache if entry.keys is not None}
    assert held.get(WINDOW, 0) <= 64 and held.get(None, 96) >= 72


def test_rows_of_two_runs_cannot_be_taken_back_at_once() -> None:
    cache, row = SparseCache(None), mx.zeros((1, 1, 2, 4))
    cache.update_and_fetch(row, row)
    cache.skip_to(9)
    cache.update_and_fetch(row, row)
    with pytest.raises(ValueError, match="3 rows"):
        cache.trim(3)
    with pytest.raises(ValueError, match="before"):
        cache.skip_to(10)
    assert cache.trim(2) == 2 and cache.offset == 9


def test_a_recurrent_family_refuses_in_words() -> None:
    with pytest.raises(RequestError, match=r"no row for each token.*leave sparse prefill off"):
        hybrid("qwen3_next").make_sparse_cache()


def test_cancel_ends_it_after_the_pass_it_came_in(target: AttentionTarget) -> None:
    cancel, seen = threading.Event(), []
    for outcome in sparse_prefill(target, target.make_sparse_cache(), IDS, KEPT, None, (), CHUNK, cancel):
        seen.append(outcome)
        cancel.set()
    assert seen == [5]
