"""Answers to prompts read in part: called approximate wherever they are, the same in every mode, whole where all is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import pytest

from engine import Approximate, Event, Finished, GenerationRequest, Message, PrefillProgress, RequestError, SparsePrefill, load
from engine.cli import main
from engine.drafters.dflash.context import ContextCache
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.report import answer_record
from tests.engine.bench.pairs import write_pair
from tests.engine.tiny import copy_tokenizer, write_target

DOCUMENT = "The keeper counted boats, nets, ropes and lamps. " * 24
CHAT = (Message("user", DOCUMENT), Message("assistant", "I have read it."), Message("user", "What did the keeper count?"))


@pytest.fixture(scope="module")
def pair(starter: ResolvedPair, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_pair(tmp_path_factory.mktemp("pair"), starter)


@pytest.fixture(scope="module")
def tiny(pair: str) -> Iterator[Engine]:
    loaded = load(pair)
    yield loaded
    loaded.close()


def answer(engine: Engine, messages=CHAT, **settings) -> list[Event]:
    return list(engine.generate(GenerationRequest(messages, **{"max_tokens": 12, **settings})))


def test_an_answer_says_how_much_of_the_prompt_was_read(tiny: Engine) -> None:
    events = answer(tiny, sparse=SparsePrefill(0.6))
    said = [event for event in events if isinstance(event, Approximate)]
    numbers = events[-1].statistics
    total = tiny.count_tokens(CHAT)
    assert len(said) == 1 and (said[0].kept_tokens, said[0].prompt_tokens) == (numbers.kept_tokens, total)
    assert total * 0.5 < numbers.kept_tokens <= total * 0.6 and numbers.prompt_tokens == total
    assert events.index(said[0]) < next(i for i, event in enumerate(events) if isinstance(event, PrefillProgress))
    assert said[0].reason.startswith("Approximate") and f"{numbers.kept_tokens:,}" in said[0].reason
    record = answer_record(events[-1])
    assert (record["approximate"], record["kept_tokens"], record["prompt_tokens"]) == (True, numbers.kept_tokens, total)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "seed": 3}])
def test_every_mode_gives_the_same_approximate_text(tiny: Engine, settings: dict) -> None:
    sparse = SparsePrefill(0.6, "stride")
    texts = {answer(tiny, mode=mode, sparse=sparse, **settings)[-1].token_ids for mode in ("baseline", "dflash", "lookup")}
    assert len(texts) == 1
    assert texts != {answer(tiny, mode="baseline", **settings)[-1].token_ids}, "what was left out must matter here"


@pytest.mark.parametrize("messages", [CHAT, CHAT[2:]])
def test_where_nothing_is_left_out_the_answer_is_exact_and_says_nothing(tiny: Engine, messages) -> None:
    """At a share of 1, and for a chat that is all frame and last turn."""
    events = answer(tiny, messages, sparse=SparsePrefill(1.0 if messages is CHAT else 0.1))
    assert not any(isinstance(event, Approximate) for event in events)
    assert events[-1].statistics.kept_tokens is None and not answer_record(events[-1])["approximate"]
    assert events[-1].token_ids == answer(tiny, messages)[-1].token_ids


def test_a_draft_still_helps_on_a_prompt_read_in_part(engine: Engine) -> None:
    """Context rows at wrong positions would raise no error, only cost acceptance: this is where it would show."""
    code = "def add(a, b):\n    return a + b\n\n" * 30
    chat = (Message("user", code), Message("assistant", "Fine."), Message("user", "Write a function that checks a palindrome."))
    end = answer(engine, chat, mode="dflash", sparse=SparsePrefill(0.6, "stride"), max_tokens=40, block_length=8)[-1]
    assert isinstance(end, Finished) and end.statistics.kept_tokens is not None
    assert end.statistics.tokens_per_cycle > 1.8


@pytest.mark.parametrize("keep", [0.0, -0.5, 1.01, float("nan"), "0.5", None])
def test_a_share_out_of_range_is_refused(keep: Any) -> None:
    with pytest.raises(RequestError, match="above 0 and up to 1"):
        SparsePrefill(keep)


def test_an_unknown_scorer_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="'luck' is unknown"):
        SparsePrefill(0.5, "luck")


def test_a_recurrent_model_refuses_before_the_first_event(starter: ResolvedPair, tmp_path) -> None:
    from tests.engine.targets.hybrids import SHORT_CONV

    folder = write_target(tmp_path / "hybrid", "lfm2", vocab_size=49152, **SHORT_CONV)
    engine = load(str(copy_tokenizer(starter.target, folder)))
    with pytest.raises(RequestError, match="leave sparse prefill off"):
        engine.generate(GenerationRequest(CHAT, sparse=SparsePrefill(0.5)))
    engine.close()


def test_the_command_line_calls_it_approximate(pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "--model", pair, "--prompt", DOCUMENT + DOCUMENT[:600], "--max-tokens", "3", "--sparse-prefill", "0.8"]
    assert main(command) == 0
    assert "slipstream: Approximate: " in capsys.readouterr().err
    assert main([*command, "--sparse-scorer", "stride", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["approximate"] and record["kept_tokens"] < record["prompt_tokens"]
    assert main([*command[:-1], "2"]) == 2 and "above 0" in capsys.readouterr().err


def test_a_skip_keeps_what_a_draft_layers_window_still_reaches() -> None:
    context, row = ContextCache([None, 6]), mx.zeros((1, 1, 5, 4))
    for layer in (0, 1):
        context.extend(layer, row, row, 0, 5)
    context.skip_to(9)
    assert (context.rows(0), context.rows(1)) == (5, 2)
    for layer in (0, 1):
        context.extend(layer, row[:, :, :2], row[:, :, :2], 9, 2)
    assert (context.rows(0), context.rows(1)) == (7, 4)
    context.skip_to(30)
    assert context.rows(1) == 0
    with pytest.raises(ValueError, match="do not follow"):
        context.extend(0, row, row, 11, 5)
