"""Bias, penalties and cuts against their definitions in NumPy, ties and extremes among them."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine import GenerationRequest
from engine.decoding.processors import Cuts, Penalties
from engine.decoding.sampling import Sampler
from tests.engine.decoding.reference import cut, penalised

VOCAB = 12
ROW = st.lists(st.integers(-6, 6).map(lambda number: number / 2), min_size=VOCAB, max_size=VOCAB)  # halves: ties are frequent
IDS = st.lists(st.integers(0, VOCAB - 1), max_size=9)
SHARES = st.sampled_from([1e-9, 0.05, 0.3, 0.5, 0.77, 0.9, 0.999, 1.0])


def candidates(logits: list[float], cuts: Cuts) -> dict[int, float]:
    """The tokens that may be drawn, with their logits."""
    ids, kept = cuts.apply(mx.array([logits]))
    tokens = list(range(len(logits))) if ids is None else ids[0].tolist()
    pairs = [(token, value) for token, value in zip(tokens, kept[0].tolist(), strict=True) if value != -np.inf]
    assert len(dict(pairs)) == len(pairs), "no token is a candidate twice"
    return dict(pairs)


@given(ROW, st.sampled_from([0, 1, 2, 5, VOCAB, 10**6]), SHARES, st.sampled_from([0.0, 0.01, 0.2, 0.6, 1.0]))
def test_the_cuts_keep_what_their_definitions_keep(logits: list[float], top_k: int, top_p: float, min_p: float) -> None:
    """Which of tied tokens stay is open, so values are compared, and top_p only where its edge is not a matter of rounding."""
    weights = np.exp(np.array(logits, dtype=np.float64))
    probabilities = weights / weights.sum()
    shares = np.cumsum(np.sort(cut(probabilities, top_k, 1.0, 0.0))[::-1])
    if np.min(np.abs(shares - top_p)) < 1e-5 and top_p < 1:
        top_p += 1e-4
    kept = candidates(logits, Cuts(top_k, top_p, min_p))
    expected = [logits[token] for token in np.flatnonzero(cut(probabilities, top_k, top_p, min_p))]
    assert sorted(kept.values()) == sorted(expected)
    assert all(logits[token] == value for token, value in kept.items())


@given(ROW)
def test_a_tiny_top_p_a_top_k_of_one_and_a_min_p_of_one_keep_the_most_likely(logits: list[float]) -> None:
    for cuts in (Cuts(top_p=1e-9), Cuts(top_k=1)):
        assert list(candidates(logits, cuts).values()) == [max(logits)]
    assert set(candidates(logits, Cuts(min_p=1.0)).values()) == {max(logits)}


def test_equal_logits_are_cut_to_the_count_asked_for() -> None:
    flat = [0.5] * VOCAB
    assert len(candidates(flat, Cuts(top_p=1e-9))) == 1
    assert len(candidates(flat, Cuts(top_k=5))) == 5
    assert len(candidates(flat, Cuts(top_p=0.49))) == 6
    assert len(candidates(flat, Cuts(min_p=1.0))) == VOCAB


def test_a_row_is_cut_alike_alone_and_in_a_block() -> None:
    rows = mx.random.normal((7, 400), key=mx.random.key(2)) * 3
    cuts = Cuts(top_k=50, top_p=0.9, min_p=0.01)
    ids, kept = cuts.apply(rows)
    for row in range(7):
        alone_ids, alone = cuts.apply(rows[row : row + 1])
        assert mx.array_equal(ids[row : row + 1], alone_ids) and mx.array_equal(kept[row : row + 1], alone)


@given(ROW, ROW, IDS, IDS, st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=5), st.data())
def test_each_row_of_a_block_is_penalised_for_what_stands_before_it(
    first: list[float], second: list[float], prompt: list[int], answer: list[int], block: list[int], data: st.DataObject
) -> None:
    """Row j of a verify pass: the prompt, the answer so far and the block's tokens up to its own, proposals included."""
    request = GenerationRequest.of(
        "x",
        repetition_penalty=data.draw(st.sampled_from([0.5, 1.0, 1.3])),
        presence_penalty=data.draw(st.sampled_from([-1.0, 0.0, 0.6])),
        frequency_penalty=data.draw(st.sampled_from([-0.5, 0.0, 0.4])),
        logit_bias=data.draw(st.dictionaries(st.integers(0, VOCAB - 1), st.sampled_from([-100.0, 2.5]), max_size=3)),
    )
    settings = (request.repetition_penalty, request.presence_penalty, request.frequency_penalty)
    penalties = Penalties(prompt, request.logit_bias, *settings)
    for count in range(0, len(answer), 2):
        penalties.advance(mx.array(answer[count : count + 2]), VOCAB)
    logits = np.array([(first, second)[row % 2] for row in range(len(block))], dtype=np.float32)
    rows = np.array(penalties.apply(mx.array(logits), mx.array(block)))
    for row, result in enumerate(rows):
        assert np.allclose(result, penalised(logits[row], request, prompt, answer + block[: row + 1]), atol=1e-4)
    alone = np.array(penalties.apply(mx.array(logits[:1]), None))
    assert np.allclose(alone[0], penalised(logits[0], request, prompt, answer), atol=1e-4)


def test_a_token_that_is_cut_is_not_drawn_even_with_the_worst_noise(monkeypatch) -> None:
    """Uniform noise of exactly 0, one draw in 2**32, gives -inf."""
    monkeypatch.setattr(Sampler, "_noise", lambda self, position, width: mx.full((width,), -np.inf))
    rows = mx.array([[0.0, 1.0, 9.0, 2.0]])
    for cuts in (Cuts(top_k=1), Cuts(top_p=0.5), Cuts(min_p=0.9)):
        assert Sampler(1.0, 0, cuts).pick(rows, 4).tolist() == [2]
