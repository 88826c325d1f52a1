"""The engine on the real starter pair: identical texts, honest statistics, cancel, limits and odd input."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from engine import (
    ContextOverflow,
    Cycle,
    Event,
    Finished,
    GenerationRequest,
    Message,
    PrefillProgress,
    RequestError,
    Started,
    TextDelta,
    compare_tokens,
)
from engine.bench.suite import read_suite
from engine.engine import Engine

PALINDROME = "Write a Python function that checks whether a string is a palindrome."


def run(engine: Engine, prompt: str, **settings: object) -> list[Event]:
    return list(engine.generate(GenerationRequest.of(prompt, **settings)))


def finished(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Finished:
    """The first 40 tokens of plain decoding's greedy answer: what a shorter one, or one in another mode, must begin with."""
    return finished(run(engine, PALINDROME, mode="baseline", max_tokens=40))


SOME = read_suite()[::12]


@pytest.mark.parametrize(
    "prompt",
    [*SOME[::4], *(pytest.param(prompt, marks=pytest.mark.slow) for prompt in SOME[1:4])],
    ids=lambda prompt: prompt.id,
)
def test_dflash_text_is_plain_text(engine: Engine, prompt) -> None:
    """A sample of the suite; more of it at 256 tokens runs in tests/perf."""
    answers = {
        mode: list(engine.generate(GenerationRequest(prompt.messages, mode=mode, max_tokens=40)))[-1]
        for mode in ("baseline", "dflash")
    }
    verdict = compare_tokens(answers["baseline"].token_ids, answers["dflash"].token_ids)
    assert verdict.identical, f"token {verdict.first_difference}"
    assert answers["dflash"].statistics.accepted > 0, "an accepted token in 40 is the least a working draft gives"
    assert answers["baseline"].text == answers["dflash"].text


ADDRESSES = "Repeat this list of addresses:\n\n" + "\n".join(
    f"{number}. {name}, {street}, {town}"
    for number, (name, street, town) in enumerate(
        [
            ("Miriam Holt", "14 Garden Lane", "Bristol"),
            ("Oskar Lindgren", "7 Harbour Street", "Malmo"),
            ("Chiara Bellini", "22 Via Roma", "Turin"),
            ("Peter Novak", "3 Castle Hill", "Brno"),
        ],
        1,
    )
)


@pytest.mark.parametrize("temperature", [0.0, pytest.param(0.8, marks=pytest.mark.slow)])
def test_copied_text_is_plain_text_and_comes_from_lookups(engine: Engine, temperature: float) -> None:
    asked = {"max_tokens": 45, "temperature": temperature, "seed": 2}
    plain, *others = (run(engine, ADDRESSES, mode=mode, **asked) for mode in ("baseline", "lookup", "dflash"))
    for fast in others:
        assert finished(fast).token_ids == finished(plain).token_ids
        looked_up = [event for event in fast if isinstance(event, Cycle) and event.source == "lookup"]
        assert looked_up and all(event.proposed for event in looked_up)
        if temperature == 0:
            assert finished(fast).statistics.tokens_per_cycle > 4


def test_a_prescribed_block_length_means_the_draft_alone(engine: Engine) -> None:
    cycles = [e for e in run(engine, ADDRESSES, mode="dflash", max_tokens=30, block_length=4) if isinstance(e, Cycle)]
    assert {cycle.source for cycle in cycles} <= {"draft", None} and max(cycle.proposed for cycle in cycles) == 3


@pytest.mark.parametrize("block_length", [2, pytest.param(5, marks=pytest.mark.slow), 16])
def test_any_block_length_gives_the_same_text(engine: Engine, plain: Finished, block_length: int) -> None:
    dflash = finished(run(engine, PALINDROME, mode="dflash", max_tokens=30, block_length=block_length))
    assert dflash.token_ids == plain.token_ids[:30]


def test_sampled_text_with_one_seed_is_the_same_in_both_modes(engine: Engine, plain: Finished) -> None:
    answers = [
        finished(run(engine, PALINDROME, mode=mode, max_tokens=25, temperature=0.8, seed=5)) for mode in ("baseline", "dflash")
    ]
    assert answers[0].token_ids == answers[1].token_ids
    assert answers[0].token_ids != plain.token_ids[:25]


def test_the_draft_is_good_at_code(engine: Engine) -> None:
    """A wrong tap, position or mask raises no error, it only costs acceptance: this is where it would show."""
    statistics = finished(run(engine, PALINDROME, mode="dflash", max_tokens=64)).statistics
    assert statistics.tokens_per_cycle > 2.5


@pytest.mark.parametrize("mode", ["baseline", "dflash", "lookup"])
def test_every_number_of_the_statistics_can_be_recomputed_from_the_events(engine: Engine, mode: str) -> None:
    events = run(engine, PALINDROME, mode=mode, max_tokens=25)
    end = finished(events)
    numbers = end.statistics
    cycles = [event for event in events if isinstance(event, Cycle)]
    looked_up = [cycle for cycle in cycles if cycle.source == "lookup"]
    assert numbers.lookup_proposed == sum(c.proposed for c in looked_up)
    assert numbers.lookup_accepted == sum(c.accepted for c in looked_up)
    assert all((c.source is None) == (c.proposed == 0) for c in cycles)
    deltas = [event for event in events if isinstance(event, TextDelta)]
    started = next(event for event in events if isinstance(event, Started))
    assert started.mode == numbers.mode == mode
    assert "".join(delta.text for delta in deltas) == end.text
    assert tuple(token for delta in deltas for token in delta.token_ids) == end.token_ids
    assert numbers.cycles == len(cycles) and numbers.completion_tokens == len(end.token_ids) == 1 + sum(c.committed for c in cycles)
    assert numbers.proposed == sum(c.proposed for c in cycles) and numbers.accepted == sum(c.accepted for c in cycles)
    assert numbers.tokens_per_cycle == pytest.approx(sum(c.committed for c in cycles) / len(cycles))
    *reading, _whole = (event.at_s for event in events if isinstance(event, PrefillProgress))
    assert reading and reading[-1] <= numbers.ttft_s <= started.at_s <= deltas[0].at_s
    assert numbers.decode_s == pytest.approx(cycles[-1].at_s - numbers.ttft_s)
    assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(event for event in events if hasattr(event, "at_s")))
    assert all(c.accepted <= c.proposed and c.committed <= c.accepted + 1 for c in cycles)


def test_prefill_reports_progress_up_to_the_whole_prompt(engine: Engine) -> None:
    progress = [e for e in run(engine, "word " * 300, max_tokens=1) if isinstance(e, PrefillProgress)]
    assert len(progress) >= 5 and progress[-1].done == progress[-1].total
    assert all(earlier.done < later.done for earlier, later in pairwise(progress))


@pytest.mark.parametrize("mode", ["baseline", "dflash"])
def test_cancel_during_prefill_stops_within_a_chunk(engine: Engine, mode: str) -> None:
    cancel = threading.Event()
    seen = []
    for event in engine.generate(GenerationRequest.of("word " * 1000, mode=mode), cancel):
        seen.append(event)
        if isinstance(event, PrefillProgress):
            cancel.set()
    assert len([e for e in seen if isinstance(e, PrefillProgress)]) == 1
    assert finished(seen).reason == "cancelled" and finished(seen).text == ""


@pytest.mark.parametrize("mode", ["baseline", "dflash"])
def test_cancel_during_decoding_keeps_the_text_so_far(engine: Engine, mode: str) -> None:
    cancel = threading.Event()
    seen: list[Event] = []
    for event in engine.generate(GenerationRequest.of(PALINDROME, mode=mode, max_tokens=200), cancel):
        seen.append(event)
        if len([e for e in seen if isinstance(e, Cycle)]) == 4:
            cancel.set()
    end = finished(seen)
    assert end.reason == "cancelled" and end.text
    assert end.text == "".join(e.text for e in seen if isinstance(e, TextDelta))
    assert end.statistics.cycles <= 5


def test_an_abandoned_answer_does_not_disturb_the_next(engine: Engine, plain: Finished) -> None:
    stream = engine.generate(GenerationRequest.of("Tell me a story.", mode="dflash"))
    for _ in range(8):
        next(stream)
    stream.close()
    assert finished(run(engine, PALINDROME, mode="dflash", max_tokens=20)).token_ids == plain.token_ids[:20]


@pytest.mark.parametrize("mode", ["baseline", "dflash"])
def test_a_stop_string_that_spans_tokens_ends_the_answer_before_it(engine: Engine, plain: Finished, mode: str) -> None:
    whole = plain.text
    stop = whole[30:41]
    end = finished(run(engine, PALINDROME, mode=mode, max_tokens=40, stop=(stop,)))
    assert end.reason == "stop" and end.text == whole[: whole.index(stop)]


def test_both_modes_commit_the_same_tokens_before_a_stop_string(engine: Engine, plain: Finished) -> None:
    stop = plain.text[50:56]
    ends = [finished(run(engine, PALINDROME, mode=mode, max_tokens=40, stop=(stop,))) for mode in ("baseline", "dflash")]
    assert ends[0].token_ids == ends[1].token_ids


def test_an_answer_that_ends_by_itself_says_so_and_hides_the_stop_token(engine: Engine) -> None:
    end = finished(run(engine, PALINDROME, mode="dflash", max_tokens=200))
    assert end.reason == "stop" and end.token_ids[-1] in engine.stop_ids
    assert "<|im_end|>" not in end.text


@pytest.mark.parametrize("limit", [1, 2, 9])
def test_the_token_limit_is_exact(engine: Engine, limit: int) -> None:
    for mode in ("baseline", "dflash"):
        end = finished(run(engine, PALINDROME, mode=mode, max_tokens=limit))
        assert end.statistics.completion_tokens == limit and end.reason == "length"


def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(engine: Engine) -> None:
    with pytest.raises(ContextOverflow) as caught:
        run(engine, "word " * 9000)
    assert caught.value.context_length == 8192 and caught.value.prompt_tokens > 9000
    assert "8,192" in str(caught.value)


@pytest.mark.parametrize("prompt", ["", "   ", "\n\t"])
def test_an_empty_prompt_is_refused(prompt: str) -> None:
    with pytest.raises(RequestError, match="empty"):
        GenerationRequest.of(prompt)


@pytest.mark.parametrize(
    "settings",
    [{"max_tokens": 0}, {"mode": "turbo"}, {"block_length": 1}, {"block_length": 65}],
)
def test_settings_out_of_range_are_refused_by_name(settings: dict) -> None:
    with pytest.raises(RequestError, match=next(iter(settings)).replace("mode", "Mode")):
        GenerationRequest.of("hello", **settings)


@pytest.mark.parametrize("prompt", ["a\x00b\x07c", "half \ud83d of an emoji", "\udc00", "zero\u200bwidth \u202e right to left"])
def test_control_characters_and_lone_surrogates_are_answered(engine: Engine, prompt: str) -> None:
    assert finished(run(engine, prompt, max_tokens=3)).statistics.completion_tokens >= 1


def test_the_engine_refuses_another_thread(engine: Engine) -> None:
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            next(engine.generate(GenerationRequest.of("hello")))
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(caught) == 1 and "thread" in str(caught[0])


def test_tokens_are_counted_as_the_prompt_would_be_run(engine: Engine) -> None:
    messages = (Message("user", "Hello"), Message("assistant", "Hi!"), Message("user", "More"))
    end = list(engine.generate(GenerationRequest(messages, max_tokens=1)))[-1]
    assert engine.count_tokens(messages) == end.statistics.prompt_tokens


def test_the_margin_of_a_choice_is_the_gap_between_the_two_best_logits(engine: Engine) -> None:
    prompt = engine.encode([Message("user", PALINDROME)])
    assert engine.top2_margin(prompt) > 0
    assert engine.top2_margin(prompt[:1]) >= 0


def test_a_token_id_outside_the_vocabulary_is_refused(engine: Engine) -> None:
    for ids in ([10**6], [1, -1]):
        with pytest.raises(RequestError, match="outside the model's vocabulary"):
            engine.top2_margin(ids)


def test_every_name_the_package_offers_is_there() -> None:
    import engine as package

    assert all(getattr(package, name) is not None for name in package.__all__)
