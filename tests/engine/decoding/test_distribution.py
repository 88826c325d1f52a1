"""Speculative output is distributed as plain sampling says it is: equal seed by seed, and by chi-square against NumPy.

The same chi-square finds a loop that draws a rejected slot anew without taking the proposal's mass away, and one that accepts all.
"""

from __future__ import annotations

from collections import Counter

import mlx.core as mx
import numpy as np
import pytest

from engine import GenerationRequest
from engine.decoding.baseline import decode_baseline
from engine.decoding.controller import Choice, FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.speculative import decode_speculative
from engine.drafters.lookup import LookupIndex
from tests.engine.decoding.reference import next_token
from tests.engine.decoding.stand_in import (
    PERIOD,
    PROMPT,
    VOCAB,
    SamplingDrafter,
    Script,
    TableDrafter,
    TableTarget,
    decoding,
    table,
    tokens,
)

LOGITS = table()
PERIODS = 1200
CUTS = {
    "temperature": {"temperature": 1.0},
    "top-p": {"temperature": 1.2, "top_p": 0.8},
    "top-k": {"temperature": 1.5, "top_k": 4},
    "min-p": {"temperature": 1.3, "min_p": 0.15},
}
PENALTIES = {"repetition_penalty": 1.6, "presence_penalty": 0.7, "frequency_penalty": 0.5, "logit_bias": {3: 1.5, 8: -2.0}}
ALL = {"temperature": 0.9, "top_p": 0.9, "top_k": 9, "min_p": 0.02, **PENALTIES}
SETTINGS = {**CUTS, "penalties": {"temperature": 1.0, **PENALTIES}, "all": ALL, "greedy with penalties": PENALTIES}


def sampler(settings: dict, seed: int, kind: type[Sampler] = Sampler) -> Sampler:
    return kind.of(GenerationRequest.of("x", seed=seed, **settings), PROMPT)


def deviation(observed: Counter, expected: dict[tuple[int, ...], float]) -> float:
    """Chi-square of outcomes against their probabilities in standard deviations (Wilson-Hilferty); rare ones are pooled."""
    count = sum(observed.values())
    rare = [outcome for outcome, share in expected.items() if share * count < 5]
    cells = [(observed[outcome], share * count) for outcome, share in expected.items() if share * count >= 5]
    impossible = count - sum(observed[outcome] for outcome in expected)
    cells.append(
        (sum(observed[outcome] for outcome in rare) + impossible, sum(expected[outcome] for outcome in rare) * count + 1e-9)
    )
    statistic, freedom = sum((seen - mean) ** 2 / mean for seen, mean in cells), len(cells) - 1
    return float(((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / (2 / (9 * freedom)) ** 0.5)


def joint(settings: dict, places: int) -> dict[tuple[int, ...], float]:
    """The probability of every beginning of an answer of ``places`` tokens, by the definitions."""
    request, result = GenerationRequest.of("x", **settings), {(): 1.0}
    for place in range(places):
        longer = {}
        for outcome, share in result.items():
            before = outcome[-1] if outcome else PROMPT[-1]
            probabilities = next_token(LOGITS[(len(PROMPT) + place) % PERIOD, before], request, PROMPT, outcome)
            longer |= {(*outcome, token): share * probabilities[token] for token in range(VOCAB) if probabilities[token] > 0}
        result = longer
    return result


def periods(settings: dict, kind: type[Sampler] = Sampler, drafter: TableDrafter | None = None) -> tuple[Counter, float]:
    """Counts of the answer's periods, each independent of the others, and the share of proposals accepted."""
    state = decoding(TableTarget(LOGITS), sampler(settings, 3, kind), PERIODS * PERIOD, drafter or TableDrafter(LOGITS))
    if isinstance(drafter, SamplingDrafter):
        drafter.draw = state.sampler.propose
    steps = list(decode_speculative(state))
    answer = tokens(iter(steps))
    tried = sum(min(step.accepted + 1, step.proposed) for step in steps)
    return Counter(zip(*[iter(answer)] * PERIOD, strict=True)), sum(step.accepted for step in steps) / tried


@pytest.mark.parametrize("settings", CUTS.values(), ids=CUTS)
def test_speculative_output_has_the_joint_distribution_of_plain_sampling(settings: dict) -> None:
    observed, accepted = periods(settings)
    expected = joint(settings, PERIOD)
    assert set(observed) <= set(expected), "a token that is cut is never drawn"
    assert deviation(observed, expected) < 3
    assert 0.25 < accepted < 0.75, "acceptances and rejections are both frequent"


def test_speculative_output_with_penalties_has_the_joint_distribution_of_plain_sampling() -> None:
    """The history reaches over the whole answer, so each answer is one draw."""
    observed = Counter(
        tuple(tokens(decode_speculative(decoding(TableTarget(LOGITS), sampler(ALL, seed), 3, TableDrafter(LOGITS)))))
        for seed in range(PERIODS)
    )
    expected = joint(ALL, 3)
    assert set(observed) <= set(expected) and deviation(observed, expected) < 3


def test_proposals_drawn_with_the_targets_noise_are_accepted_more_often_and_change_nothing() -> None:
    """A draft that is only roughly right: its likeliest tokens, then draws from its own distribution with the shared noise."""
    rough = LOGITS + table(seed=5) / 3
    settings = CUTS["temperature"]
    blind, likeliest = periods(settings, drafter=TableDrafter(rough))
    observed, coupled = periods(settings, drafter=SamplingDrafter(rough))
    assert observed == blind and deviation(observed, joint(settings, PERIOD)) < 3
    assert coupled > likeliest + 0.1


class Redraws(Sampler):
    """Wrong: a rejected slot is drawn anew from p itself, so the rejected token keeps its mass."""

    def pick(self, logits: mx.array, position: int, block: mx.array | None = None) -> mx.array:
        choices = super().pick(logits, position, block)
        if block is None or block.shape[0] == 1:
            return choices
        again = Sampler(self._temperature, self._seed + 1).pick(logits, position, block)
        return mx.concatenate([mx.where(choices == mx.roll(block, -1), choices, again)[:-1], choices[-1:]])


class AcceptsAll(Sampler):
    """Wrong: every proposal stands."""

    def pick(self, logits: mx.array, position: int, block: mx.array | None = None) -> mx.array:
        choices = super().pick(logits, position, block)
        return choices if block is None else mx.concatenate([block[1:], choices[-1:]])


@pytest.mark.parametrize("kind", [Redraws, AcceptsAll])
def test_the_chi_square_finds_a_loop_without_the_residual(kind: type[Sampler]) -> None:
    observed, _ = periods(CUTS["temperature"], kind)
    assert deviation(observed, joint(CUTS["temperature"], PERIOD)) > 6


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_one_seed_gives_one_text_plainly_drafted_looked_up_and_parked(settings: dict) -> None:
    target, different = TableTarget(LOGITS), set()
    for seed in range(12):
        plain = tokens(decode_baseline(decoding(target, sampler(settings, seed), 24)))
        different.add(tuple(plain))
        drafted, looked_up = TableDrafter(LOGITS), FixedLength(4, "lookup")
        for drafter, policy in ((drafted, Script(Choice(4))), (drafted, Script(Choice(1, 3), Choice(4))), (None, looked_up)):
            recall = LookupIndex() if policy is looked_up else None
            state = decoding(target, sampler(settings, seed), 24, drafter, policy=policy, recall=recall)
            assert tokens(decode_speculative(state)) == plain
    assert len(different) == (1 if "temperature" not in settings else 12)


def test_greedy_with_penalties_is_the_argmax_of_the_penalised_logits() -> None:
    plain = tokens(decode_baseline(decoding(TableTarget(LOGITS), sampler(PENALTIES, 0), 24)))
    request = GenerationRequest.of("x", temperature=1e-3, **PENALTIES)
    for place, token in enumerate(plain):
        before = plain[place - 1] if place else PROMPT[-1]
        assert token == np.argmax(next_token(LOGITS[(len(PROMPT) + place) % PERIOD, before], request, PROMPT, plain[:place]))
