"""A choice depends on logits, seed and absolute position, and is distributed as the softmax says."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.decoding.processors import Cuts
from engine.decoding.sampling import Sampler

LOGITS = mx.array([[0.0, 1.0, 2.0, 0.5, -1.0]])


def test_temperature_zero_is_the_argmax() -> None:
    assert Sampler(0.0, 3).pick(mx.array([[0.1, 0.3, 0.2], [5.0, 1.0, 4.0]]), 7).tolist() == [1, 0]


def test_a_row_draws_the_same_token_whatever_block_it_stands_in() -> None:
    rows = mx.random.normal((6, 40), key=mx.random.key(1))
    sampler = Sampler(1.0, 42)
    together = sampler.pick(rows, 100).tolist()
    assert together == [sampler.pick(rows[i : i + 1], 100 + i).item() for i in range(6)]


def test_seeds_and_positions_give_different_draws() -> None:
    flat = mx.zeros((1, 1000))
    draws = {Sampler(1.0, seed).pick(flat, position).item() for seed in range(4) for position in range(40)}
    assert len(draws) > 130, "160 draws from 1,000 equal tokens hardly ever coincide more often"


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_follow_the_softmax(temperature: float) -> None:
    """Chi-square over 4,000 draws, 4 degrees of freedom: 18.5 is passed once in a thousand by a right sampler; seeds fixed."""
    count = 4000
    sampler = Sampler(temperature, 9)
    draws = sampler.pick(mx.repeat(LOGITS, count, axis=0), 0)
    observed = np.bincount(np.array(draws), minlength=5)
    expected = np.array(mx.softmax(LOGITS[0] / temperature)) * count
    assert ((observed - expected) ** 2 / expected).sum() < 18.5


@pytest.mark.parametrize("cuts", [Cuts(), Cuts(top_k=9), Cuts(top_p=0.8), Cuts(min_p=0.2)], ids=str)
def test_a_draft_that_agrees_with_the_target_proposes_the_targets_own_draws(cuts: Cuts) -> None:
    """The same logits at the same position, the same noise: the same token, also when the draft knows only some of the tokens."""
    rows = mx.random.normal((8, 60), key=mx.random.key(4)) * 2
    sampler = Sampler(0.9, 7, cuts)
    drawn = sampler.pick(rows, 20).tolist()
    assert sampler.propose(rows, 20).tolist() == drawn != sampler.propose(rows, 21).tolist()
    ids = mx.array([*range(30, 60), *range(0, 30, 2)])
    known = mx.full((8, 60), -1e9)
    known[:, ids] = rows[:, ids]
    assert sampler.propose(rows[:, ids], 20, ids).tolist() == sampler.pick(known, 20).tolist()
    padded = mx.pad(rows, ((0, 0), (0, 4)), constant_values=9.0)
    assert sampler.propose(padded, 20).tolist() == drawn, "what pads a draft's head is no token"


def test_greedy_proposals_are_the_drafts_likeliest_tokens() -> None:
    ids = mx.array([4, 9, 2])
    rows = mx.array([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]])
    assert Sampler(0.0, 0).propose(rows, 3, ids).tolist() == [9, 4] and Sampler(0.0, 0).propose(rows, 3).tolist() == [1, 0]
