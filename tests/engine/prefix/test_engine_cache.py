"""The prefix cache in the engine, on the real starter pair: every chat hits all but what is new, and no text changes by it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Finished, GenerationRequest, LoadOptions, Message, PrefillProgress, Started, load
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.prefix.boundaries import common_prefix
from tests.engine.bench.pairs import write_pair

STORY = " ".join(
    f"On day {day} the ship {name} sailed {3 * day} miles to the north." for day, name in enumerate(["Anna", "Bella", "Cora"] * 2)
)


@pytest.fixture(scope="module")
def engine(starter: ResolvedPair) -> Iterator[Engine]:
    """An engine of its own, which keeps prefixes in memory only, in blocks that short prompts have several of on any machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.loading.kept_chunk", lambda *_: 32)
        loaded = load("starter", options=LoadOptions(prefix_disk_bytes=0))
    yield loaded
    loaded.close()


def ask(engine: Engine, *turns: str, **settings: object) -> Finished:
    """The answer to a chat of turns, the user's first."""
    roles = ("user", "assistant")
    messages = tuple(Message(roles[index % 2], text) for index, text in enumerate(turns))
    *_, end = engine.generate(GenerationRequest(messages, **{"max_tokens": 16, **settings}))
    assert isinstance(end, Finished)
    return end


def blocks(engine: Engine, tokens: int) -> int:
    """``tokens`` cut to whole blocks."""
    return tokens // engine.prefill_chunk * engine.prefill_chunk


@pytest.mark.parametrize(("first", "modes"), [("baseline", ["dflash", "lookup"]), ("dflash", ["baseline"])])
def test_a_change_of_mode_loses_nothing_and_changes_nothing(engine: Engine, first: str, modes: list[str]) -> None:
    """As many tokens are proposed and accepted as from the start: the draft's context came back whole."""
    prompt = f"{first}: {STORY} What happened on day 3?"
    ask(engine, prompt, mode=first)
    for mode in modes:
        restored, cold = (ask(engine, prompt, mode=mode, block_length=6, use_cache=use) for use in (True, False))
        now, then = restored.statistics, cold.statistics
        assert now.cached_tokens == blocks(engine, now.prompt_tokens - 1) > 0
        assert (now.cache, then.cache, then.cached_tokens) == ("memory", "turned off", 0)
        assert restored.token_ids == cold.token_ids
        assert (now.proposed, now.accepted) == (then.proposed, then.accepted)
        assert mode != "dflash" or then.accepted > 0


def test_every_turn_of_a_chat_hits_all_but_what_is_new(engine: Engine) -> None:
    turns = [f"Read this. {STORY}"]
    before: list[int] = []
    for question in ("Which ships are there?", "How far did Anna sail?", "Thank you!"):
        answer = ask(engine, *turns, max_tokens=12)
        ids = engine.encode([Message(("user", "assistant")[index % 2], text) for index, text in enumerate(turns)])
        if before:
            assert answer.statistics.cached_tokens >= blocks(engine, common_prefix(before, ids)), (
                "the chat so far was not all there"
            )
        while engine.settle():
            pass
        assert answer.token_ids == ask(engine, *turns, max_tokens=12, use_cache=False).token_ids
        turns += [answer.text, question]
        before = engine.encode([Message(("user", "assistant")[index % 2], text) for index, text in enumerate(turns[:-1])])


def test_the_answer_itself_is_ready_once_the_engine_has_settled(engine: Engine) -> None:
    turns = ["Count from 1 to 90, separated by commas."]
    answer = ask(engine, *turns, max_tokens=70)
    chat = [*turns, answer.text, "And backwards?"]
    without = ask(engine, *chat, max_tokens=1).statistics
    assert without.cached_tokens < blocks(engine, without.prompt_tokens - 12)
    engine._prefix._ram.clear()
    ask(engine, *turns, max_tokens=70)
    assert engine.settle(), "a chunk at a time"
    while engine.settle():
        pass
    assert engine.settle() is False
    after = ask(engine, *chat, max_tokens=1).statistics
    assert after.cached_tokens == blocks(engine, after.prompt_tokens - 12) > without.cached_tokens


def test_a_request_that_comes_while_settling_keeps_what_was_done(engine: Engine) -> None:
    turns = ["Count from 1 to 90, separated by commas."]
    engine._prefix._ram.clear()
    chat = [*turns, ask(engine, *turns, max_tokens=70).text, "Stop."]
    before = ask(engine, *chat, max_tokens=1).statistics.cached_tokens
    engine._prefix._ram.clear()
    ask(engine, *turns, max_tokens=70)
    assert engine.settle()
    ask(engine, "Hello", max_tokens=1)
    assert ask(engine, *chat, max_tokens=1).statistics.cached_tokens > before


def test_edits_and_regenerated_answers_hit_up_to_the_change(engine: Engine) -> None:
    chat = [f"Here is a log. {STORY}", "I have read it.", f"Now compare with this: {STORY[:200]}", "Done.", "Which day was last?"]
    ask(engine, *chat)
    again = ask(engine, *chat).statistics
    assert again.cached_tokens == blocks(engine, again.prompt_tokens - 1)
    for changed in (2, 4):
        edited = [*chat[:changed], "Something else entirely, please.", *chat[changed + 1 :]]
        parting = common_prefix(
            *(engine.encode([Message(("user", "assistant")[i % 2], t) for i, t in enumerate(c)]) for c in (chat, edited))
        )
        end = ask(engine, *edited)
        assert end.statistics.cached_tokens == blocks(engine, parting)
        assert end.statistics.cache == "memory"
        assert end.token_ids == ask(engine, *edited, use_cache=False).token_ids


def test_a_copy_task_is_the_same_byte_for_byte(engine: Engine) -> None:
    prompt = f"Repeat the following text exactly:\n\n{STORY[:150]}"
    ask(engine, prompt, max_tokens=1)
    restored, cold = (ask(engine, prompt, max_tokens=50, use_cache=use) for use in (True, False))
    assert restored.statistics.cached_tokens > 0
    assert restored.text.encode() == cold.text.encode() and restored.token_ids == cold.token_ids


def test_without_the_cache_nothing_is_left_there(engine: Engine) -> None:
    prompt = f"Unseen so far. {STORY}"
    ask(engine, prompt, use_cache=False)
    assert engine.settle() is False
    assert ask(engine, prompt).statistics.cached_tokens == 0


def test_a_block_that_could_not_be_computed_while_settling_spoils_no_later_answer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory may run out between two turns: what was recorded by then has no numbers."""
    turns = ["Count from 1 to 90, separated by commas."]
    engine._prefix._ram.clear()
    ask(engine, *turns, max_tokens=70)
    kept = engine._prefix._ram.nbytes

    def run_out_of_memory(*arrays: object) -> None:
        raise RuntimeError("[malloc] Unable to allocate")

    with monkeypatch.context() as patched:
        patched.setattr("engine.prefill.chunked.mx.eval", run_out_of_memory)
        with pytest.raises(RuntimeError, match="Unable to allocate"):
            engine.settle()
    assert engine._prefix._ram.nbytes == kept and engine.settle() is False


def test_after_a_failure_nothing_is_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed may have spoiled the caches before it was noticed."""

    def failing(*_: object) -> Iterator[None]:
        raise RuntimeError("scripted")
        yield

    prompt = f"Not to be kept. {STORY}"
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="scripted"):
        patched.setattr(engine, "_decode", failing)
        ask(engine, prompt)
    assert ask(engine, prompt, max_tokens=1).statistics.cached_tokens == 0


def test_a_prompt_stopped_half_way_goes_on_from_there(engine: Engine) -> None:
    prompt, cancel, done = f"Half of it. {STORY}", threading.Event(), []
    for event in engine.generate(GenerationRequest.of(prompt), cancel):
        if isinstance(event, PrefillProgress):
            done.append(event.done)
            if len(done) == 2:
                cancel.set()
    assert ask(engine, prompt).statistics.cached_tokens == done[1]


def test_what_was_cached_is_shown_before_and_after_the_answer(engine: Engine) -> None:
    prompt = f"Shown. {STORY}"
    ask(engine, prompt)
    events = list(engine.generate(GenerationRequest.of(prompt, max_tokens=2)))
    started, end = next(event for event in events if isinstance(event, Started)), events[-1]
    assert isinstance(end, Finished)
    shown = (end.statistics.cached_tokens, end.statistics.cache)
    assert shown == (started.cached_tokens, started.cache) == (blocks(engine, started.prompt_tokens - 1), "memory")
    assert isinstance(events[0], PrefillProgress) and events[0].done == started.cached_tokens


def test_a_budget_of_nothing_turns_the_cache_off(starter: ResolvedPair, tmp_path: Path) -> None:
    engine = load(write_pair(tmp_path, starter), options=LoadOptions(prefix_ram_bytes=0, prefix_disk_bytes=0))
    assert [ask(engine, STORY, max_tokens=1).statistics.cache for _ in range(2)] == ["turned off"] * 2
    engine.close()
