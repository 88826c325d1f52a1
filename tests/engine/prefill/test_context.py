"""Chats around the size of the context: what fits is answered, what does not is refused or shortened, and it is said."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import ContextFull, ContextOverflow, Finished, GenerationRequest, Message, RequestError, Trimmed, load
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.prefill.context import RESERVED_SHARE, fit_context
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

CONTEXT = 400
SYSTEM, GREETING = Message("system", "Be brief."), Message("assistant", "Good morning.")


@pytest.fixture(scope="module")
def small(starter: ResolvedPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine whose context holds ``CONTEXT`` tokens; its weights are random, its tokenizer and template the starter's."""
    folder = tmp_path_factory.mktemp("small")
    config = target_config(vocab_size=49152, max_position_embeddings=CONTEXT)
    write_target(folder / "target", vocab_size=49152, max_position_embeddings=CONTEXT)
    copy_tokenizer(starter.target, folder / "target")
    write_draft(folder / "draft", config)
    engine = load(f"{folder / 'target'}+{folder / 'draft'}")
    yield engine
    engine.close()


def prompt_of(engine: Engine, tokens: int) -> tuple[Message, ...]:
    """A chat of one message that makes exactly ``tokens`` prompt tokens."""
    frame = engine.count_tokens([Message("user", "word")]) - 1
    messages = (Message("user", " ".join(["word"] * (tokens - frame))),)
    assert engine.count_tokens(messages) == tokens
    return messages


@pytest.mark.parametrize("mode", ["baseline", "dflash", "lookup"])
@pytest.mark.parametrize("tokens", [CONTEXT * 99 // 100, CONTEXT - 1])
def test_a_prompt_that_fits_is_answered_up_to_the_end_of_the_context(small: Engine, mode: str, tokens: int) -> None:
    events = list(small.generate(GenerationRequest(prompt_of(small, tokens), mode=mode, max_tokens=50)))
    end = events[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.statistics.completion_tokens) == ("length", CONTEXT - tokens)
    assert end.statistics.context_full and isinstance(events[-2], ContextFull)
    assert f"{CONTEXT} tokens" in events[-2].reason


@pytest.mark.parametrize("tokens", [CONTEXT, CONTEXT * 101 // 100])
def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers(small: Engine, tokens: int) -> None:
    with pytest.raises(ContextOverflow, match=f"{tokens} tokens.*{CONTEXT}") as caught:
        small.generate(GenerationRequest(prompt_of(small, tokens)))
    assert (caught.value.prompt_tokens, caught.value.context_length) == (tokens, CONTEXT)


def test_an_answer_cut_by_the_limit_asked_for_does_not_blame_the_context(small: Engine) -> None:
    for limit in (3, 4):  # the second fills the context to the last token, as asked
        events = list(small.generate(GenerationRequest(prompt_of(small, CONTEXT - 4), max_tokens=limit)))
        assert not any(isinstance(event, ContextFull) for event in events)
        assert events[-1].reason == "length" and not events[-1].statistics.context_full


def turns(count: int, words: int = 20) -> list[Message]:
    """``count`` questions with their answers."""
    pairs = [(Message("user", f"q{n} " + "word " * words), Message("assistant", f"a{n} " + "word " * words)) for n in range(count)]
    return [message for pair in pairs for message in pair]


def test_the_oldest_turns_are_dropped_in_pairs_until_the_answer_has_room(small: Engine) -> None:
    messages = (SYSTEM, *turns(12), Message("user", "And now?"))
    with pytest.raises(ContextOverflow):
        small.generate(GenerationRequest(messages))
    request = GenerationRequest(messages, max_tokens=10, overflow="drop_oldest")
    events = list(small.generate(request))
    trimmed = [event for event in events if isinstance(event, Trimmed)]
    assert events.index(trimmed[0]) == 0 and len(trimmed) == 1
    dropped = trimmed[0].messages
    assert dropped % 2 == 0
    left = (SYSTEM, *messages[1 + dropped :])
    one_more = (SYSTEM, *messages[1 + dropped - 2 :])
    assert small.count_tokens(left) + 10 <= CONTEXT < small.count_tokens(one_more) + 10, "as few as leave room"
    assert trimmed[0].tokens == small.count_tokens(messages) - small.count_tokens(left)
    numbers = events[-1].statistics
    assert numbers.prompt_tokens == small.count_tokens(left)
    assert (numbers.dropped_messages, numbers.dropped_tokens) == (dropped, trimmed[0].tokens)
    plain = list(small.generate(GenerationRequest(left, max_tokens=10)))[-1]
    assert events[-1].token_ids == plain.token_ids


def test_a_chat_that_fits_is_left_whole(small: Engine) -> None:
    request = GenerationRequest((SYSTEM, *turns(2), Message("user", "So?")), max_tokens=2, overflow="drop_oldest")
    events = list(small.generate(request))
    assert not any(isinstance(event, Trimmed) for event in events) and events[-1].statistics.dropped_messages == 0


def test_a_last_message_that_alone_does_not_fit_is_refused_with_its_own_numbers(small: Engine) -> None:
    last = prompt_of(small, CONTEXT * 101 // 100)
    with pytest.raises(ContextOverflow) as caught:
        small.generate(GenerationRequest((*turns(3), *last), overflow="drop_oldest"))
    assert caught.value.prompt_tokens == CONTEXT * 101 // 100


def test_a_last_message_that_leaves_less_than_the_reserve_is_still_answered(small: Engine) -> None:
    last = prompt_of(small, CONTEXT - 3)
    end = list(small.generate(GenerationRequest((*turns(3), *last), overflow="drop_oldest", mode="baseline")))[-1]
    assert (end.statistics.dropped_messages, end.statistics.completion_tokens, end.statistics.context_full) == (6, 3, True)


def test_an_unknown_policy_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match=r"'shrink'.*refuse, drop_oldest"):
        GenerationRequest.of("hello", overflow="shrink")


def words(messages: tuple[Message, ...]) -> list[int]:
    """A renderer of one token a word and three a message."""
    return [0] * sum(len(message.content.split()) + 3 for message in messages)


def chats(*roles: str) -> st.SearchStrategy[list[Message]]:
    """Up to twelve messages of these roles and of any length."""
    message = st.builds(Message, st.sampled_from(roles), st.integers(0, 30).map(lambda count: "w " * count))
    return st.lists(message, max_size=12)


@given(chats("system", "user", "assistant"), chats("assistant"), st.integers(1, 40), st.integers(20, 200))
def test_whatever_is_dropped_the_system_prompts_and_the_last_turn_stay(before, after, max_tokens: int, context: int) -> None:
    chat = (GREETING, *before, Message("user", "the last one"), *after)
    try:
        fitted = fit_context(GenerationRequest(chat, max_tokens=max_tokens, overflow="drop_oldest"), words, context)
    except ContextOverflow as error:
        alone = tuple(m for i, m in enumerate(chat) if m.role == "system" or i > len(before))
        assert error.prompt_tokens == len(words(alone)) >= context
        return
    assert len(fitted.ids) < context and fitted.ids == words(fitted.messages)
    assert fitted.dropped_tokens == len(words(chat)) - len(fitted.ids)
    kept = list(fitted.messages)
    assert [m for m in kept if m.role == "system"] == [m for m in chat if m.role == "system"]
    assert kept[len(kept) - len(after) - 1 :] == list(chat[len(before) + 1 :])
    others, all_others = ([m for m in messages if m.role != "system"] for messages in (kept, chat))
    assert others == all_others[len(all_others) - len(others) :], "only the oldest go"
    if fitted.dropped:
        assert others[0].role == "user" and len(words(chat)) + min(max_tokens, context // RESERVED_SHARE) > context
