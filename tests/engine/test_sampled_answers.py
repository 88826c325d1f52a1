"""Sampling settings, log probabilities and broken logits through the whole engine, on the real starter pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import pytest

from engine import Cycle, Event, Finished, GenerationRequest, Message, ModelError, RequestError, Started, TextDelta
from engine.engine import Engine

PROMPT = "Write a Python function that checks whether a string is a palindrome."
MODES = ["baseline", "dflash", "lookup"]
TOKENS = 16
EVERYTHING = {
    "temperature": 0.9,
    "seed": 4,
    "top_k": 200,
    "top_p": 0.95,
    "min_p": 0.01,
    "repetition_penalty": 1.1,
    "presence_penalty": 0.3,
    "frequency_penalty": 0.2,
    "logprobs": 3,
}


def run(engine: Engine, mode: str, **settings: Any) -> list[Event]:
    return list(engine.generate(GenerationRequest.of(PROMPT, mode=mode, **{"max_tokens": TOKENS, "use_cache": False} | settings)))


def end(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


@pytest.fixture(scope="module")
def whole(engine: Engine) -> Finished:
    """The greedy answer, the same in every mode, and longer than the others."""
    return end(run(engine, "baseline", max_tokens=24))


def test_one_seed_gives_one_text_and_the_same_logprobs_in_every_mode(engine: Engine) -> None:
    answers = [end(run(engine, mode, **EVERYTHING)) for mode in MODES]
    plain = answers[0]
    assert len(plain.logprobs) == TOKENS and [record.token_id for record in plain.logprobs] == list(plain.token_ids)
    for other in answers[1:]:
        assert other.token_ids == plain.token_ids
        for mine, theirs in zip(plain.logprobs, other.logprobs, strict=True):
            assert theirs.logprob == pytest.approx(mine.logprob, abs=1e-4)
            assert [value for _, value in theirs.top] == pytest.approx([value for _, value in mine.top], abs=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_every_delta_carries_the_logprobs_of_its_tokens_up_to_a_stop_string(engine: Engine, whole: Finished, mode: str) -> None:
    events = run(engine, mode, logprobs=0, stop=(whole.text[25:33],))
    deltas = [event for event in events if isinstance(event, TextDelta)]
    assert all([record.token_id for record in delta.logprobs] == list(delta.token_ids) for delta in deltas)
    assert end(events).logprobs == tuple(record for delta in deltas for record in delta.logprobs)
    assert all(record.top == () and record.logprob <= 0 for record in end(events).logprobs)
    assert len(end(events).logprobs) == len(end(events).token_ids) < TOKENS


def test_without_being_asked_no_event_carries_logprobs(engine: Engine) -> None:
    assert not any(getattr(event, "logprobs", ()) for event in run(engine, "dflash"))


def test_a_bias_beyond_the_vocabulary_is_refused_before_anything_runs(engine: Engine) -> None:
    with pytest.raises(RequestError, match=r"token 49152 and the model's last one is 49151"):
        engine.generate(GenerationRequest.of(PROMPT, logit_bias={49152: 1.0}))


@pytest.mark.parametrize("mode", MODES)
def test_a_penalty_against_repetition_keeps_the_answer_from_repeating(engine: Engine, whole: Finished, mode: str) -> None:
    """The strongest penalties leave no token for a second time; a bias can still force one."""
    penalties = {"frequency_penalty": 2.0, "presence_penalty": 2.0, "repetition_penalty": 10.0}
    ids = end(run(engine, mode, max_tokens=24, **penalties)).token_ids
    assert len(set(ids)) == len(ids) == 24 > len(set(whole.token_ids)), "without them it repeats some"
    assert set(end(run(engine, mode, max_tokens=6, logit_bias={1234: 100.0})).token_ids) == {1234}


class Breaking:
    """The target, with logits that are no numbers wherever they choose a token at ``place`` or behind it."""

    def __init__(self, target: Any, place: int):
        self._target, self._place, self._run = target, place, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def forward(self, ids: mx.array, cache: Any, taps: tuple[int, ...] = ()) -> Any:
        output = self._target.forward(ids, cache, taps)
        chosen = mx.arange(ids.shape[0]) + self._run + 1
        self._run += ids.shape[0]
        output.logits = mx.where((chosen >= self._place)[:, None], math.nan, output.logits)
        return output

    def rollback(self, cache: Any, rejected: int) -> None:
        self._run -= rejected
        self._target.rollback(cache, rejected)


@pytest.fixture
def broken(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Breaks the engine's target after so many tokens of the answer."""

    def after(tokens: int) -> Engine:
        length = engine.count_tokens([Message("user", PROMPT)])
        monkeypatch.setattr(engine, "_target", Breaking(engine._target, length + tokens))
        return engine

    yield after


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", [0, 1, 9])
def test_broken_logits_end_the_answer_with_an_error_after_all_that_was_good(
    whole: Finished, broken: Any, mode: str, given: int
) -> None:
    request, seen = GenerationRequest.of(PROMPT, mode=mode, max_tokens=TOKENS, logprobs=0, use_cache=False), []
    with pytest.raises(ModelError, match=r"output is not a number.* try again"):
        for event in broken(given).generate(request):
            seen.append(event)
    deltas = [event for event in seen if isinstance(event, TextDelta)]
    assert tuple(token for delta in deltas for token in delta.token_ids) == whole.token_ids[:given]
    text = "".join(delta.text for delta in deltas)
    assert whole.text.startswith(text) and bool(text) == (given > 0)
    assert sum(event.committed for event in seen if isinstance(event, Cycle)) == max(0, given - 1)
    assert not any(isinstance(event, Finished) for event in seen) and any(isinstance(e, Started) for e in seen) == (given > 0)


def test_the_answer_after_a_broken_one_is_whole(
    engine: Engine, whole: Finished, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError):
        run(broken(5), "dflash")
    monkeypatch.undo()
    assert end(run(engine, "dflash")).token_ids == whole.token_ids[:TOKENS]
