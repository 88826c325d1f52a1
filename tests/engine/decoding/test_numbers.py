"""Logits that are no numbers end the answer before the token they would have chosen, in every kind of pass; and logprobs."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from engine.decoding.baseline import decode_baseline
from engine.decoding.controller import Choice, FixedLength
from engine.decoding.processors import Cuts, Penalties
from engine.decoding.sampling import NOT_A_NUMBER, Sampler
from engine.decoding.speculative import decode_speculative
from engine.decoding.steps import Decoding, Step
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.decoding.stand_in import PERIOD, PROMPT, VOCAB, Script, TableTarget, decoding, table, tokens

LOGITS = table()
LENGTH = 20
BROKEN = {
    "nan": [math.nan],
    "one nan": [1.0] * (VOCAB - 1) + [math.nan],
    "inf": [0.0] * (VOCAB - 1) + [math.inf],
    "-inf": [-math.inf],
}
POLICIES = {"plain": None, "verify": FixedLength(4), "parked": Script(Choice(1, 50)), "mixed": Script(Choice(1, 3), Choice(4))}


def answer(policy: FixedLength | None, **changes: object) -> tuple[Decoding, list[Step]]:
    """A run of the loop that ``policy`` belongs to; the oracle is right about two tokens of three."""
    target = changes.pop("target", TableTarget(LOGITS))
    sampler, limit = changes.pop("sampler", None) or Sampler(0.8, 1), changes.pop("max_tokens", LENGTH)
    if policy is None:
        state = decoding(target, sampler, limit, **changes)
        return state, list(decode_baseline(state))
    state = decoding(target, sampler, limit, OracleDrafter(PLAIN, len(PROMPT), lambda _cycle: 2, 4), policy=policy, **changes)
    return state, list(decode_speculative(state))


PLAIN = tokens(decode_baseline(decoding(TableTarget(LOGITS), Sampler(0.8, 1), LENGTH)))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("given", range(9))
def test_the_answer_ends_before_the_first_token_that_no_number_chose(policy: FixedLength | None, given: int) -> None:
    """``given`` 0: the row that prefill leaves; then every place in blocks, steps and between them."""
    state, steps = answer(policy, target=TableTarget(LOGITS, broken_at=len(PROMPT) + given))
    assert tokens(iter(steps)) == PLAIN[:given] and state.broken
    assert all(step.accepted <= len(step.tokens) for step in steps)


@pytest.mark.parametrize(
    "settings", [(0.0, None, None), (0.7, None, None), (0.7, Cuts(3, 0.9, 0.1), Penalties([1], [(2, 1.0)], 1.2))]
)
@pytest.mark.parametrize("row", BROKEN.values(), ids=BROKEN)
def test_no_setting_makes_a_token_of_a_row_that_is_no_number(row: list[float], settings: tuple) -> None:
    temperature, cuts, penalties = settings
    rows = mx.array([[0.0] * VOCAB, (row * VOCAB)[:VOCAB], [1.0] * VOCAB])
    picked = Sampler(temperature, 0, cuts, penalties).pick(rows, 5, mx.array([1, 2, 3])).tolist()
    assert picked[1] == NOT_A_NUMBER and picked[0] >= 0 and picked[2] >= 0


def test_single_tokens_ruled_out_by_minus_infinity_are_no_error() -> None:
    assert Sampler(0.0, 0).pick(mx.array([[-math.inf, 2.0, -math.inf]]), 3).tolist() == [1]


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_rows_behind_the_end_of_the_answer_do_not_matter(policy: FixedLength | None) -> None:
    place = next(i for i in range(3, LENGTH) if PLAIN[i] not in PLAIN[:i])
    broken = TableTarget(LOGITS, broken_at=len(PROMPT) + place + 1)
    state, steps = answer(policy, target=broken, stop_ids=frozenset({PLAIN[place]}))
    assert tokens(iter(steps)) == PLAIN[: place + 1] and not state.broken
    state, steps = answer(policy, target=broken, max_tokens=place + 1)
    assert tokens(iter(steps)) == PLAIN[: place + 1] and not state.broken


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("top", [0, 3, 20])
def test_logprobs_are_the_targets_own_before_penalties_and_temperature(policy: FixedLength | None, top: int) -> None:
    sampler = Sampler(0.8, 1, Cuts(top_k=6), Penalties(PROMPT, [(4, 3.0)], 1.4, 0.5, 0.5), top)
    _, steps = answer(policy, sampler=sampler)
    records = [record for step in steps for record in step.logprobs]
    emitted = tokens(iter(steps))
    assert [record.token_id for record in records] == emitted and len(emitted) == LENGTH
    for place, record in enumerate(records):
        before = emitted[place - 1] if place else PROMPT[-1]
        row = LOGITS[(len(PROMPT) + place) % PERIOD, before].astype(np.float64)
        expected = row - np.log(np.exp(row).sum())
        assert record.logprob == pytest.approx(expected[record.token_id], abs=1e-4)
        best = np.argsort(-expected)[:top]
        assert [token for token, _ in record.top] == best.tolist() and len(record.top) == min(top, VOCAB)
        assert [value for _, value in record.top] == pytest.approx(expected[best], abs=1e-4)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_without_being_asked_nothing_computes_logprobs(policy: FixedLength | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.decoding.sampling.pack_logprobs", None)
    _, steps = answer(policy)
    assert tokens(iter(steps)) == PLAIN and not any(step.logprobs for step in steps)
