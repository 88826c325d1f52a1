"""Where chats part is found by rendering, whatever the template does with earlier turns."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from engine import Message
from engine.errors import ModelError
from engine.prefix.boundaries import MAX_TURNS, common_prefix, continued_prefix, parting_places


def chatml(messages: Sequence[Message]) -> list[int]:
    """One token a character."""
    return [*map(ord, "".join(f"<{m.role}>{m.content}</>" for m in messages) + "<assistant>")]


def forgets_thinking(messages: Sequence[Message]) -> list[int]:
    """Earlier thinking is dropped, as Qwen3's template does, and every answer opens with a mark for it."""
    bare = [Message(m.role, re.sub("<t>.*</t>", "", m.content)) for m in messages]
    return [*chatml(bare), *map(ord, "<t>")]


def moves_tools(messages: Sequence[Message]) -> list[int]:
    """What the tools are stands right before the last turn, as Mistral's template has it."""
    return chatml([*messages[:-1], Message("system", "tools"), messages[-1]])


def refuses(messages: Sequence[Message]) -> list[int]:
    raise ModelError("The template refused.")


CHAT = [Message("system", "Be brief."), Message("user", "Hello"), Message("assistant", "Hi!"), Message("user", "And now?")]
TEMPLATES = [chatml, forgets_thinking, moves_tools]


@pytest.mark.parametrize("encode", TEMPLATES)
@pytest.mark.parametrize("answer", ["Now then.", "<t>hm</t>Now then.", "", "1", "A"])
def test_what_every_next_prompt_begins_with(encode, answer: str) -> None:
    prefix = continued_prefix(encode, CHAT, answer)
    for text in ("Thanks", "1", "A", "<t>x</t>", "\n"):
        following = encode([*CHAT, Message("assistant", answer), Message("user", text)])
        assert following[: len(prefix)] == prefix
    if encode is not moves_tools:
        assert "".join(map(chr, prefix)).endswith("</><user>"), "the whole answer belongs to it"


@pytest.mark.parametrize("encode", TEMPLATES)
def test_an_edit_of_a_user_turn_parts_at_a_place_found(encode) -> None:
    ids = encode(CHAT)
    places = parting_places(encode, CHAT, ids, 0)
    for index in (1, 3):
        edited = [*CHAT[:index], Message("user", "Something else")]
        parting = common_prefix(ids, encode(edited))
        assert max(place for place in places if place <= parting) >= parting - len("</>"), "no place near the parting"


def test_the_answer_is_a_place_even_where_the_template_opens_it_differently() -> None:
    ids = forgets_thinking(CHAT)
    following = forgets_thinking([*CHAT, Message("assistant", "Yes"), Message("user", "Go on")])
    assert common_prefix(ids, following) in parting_places(forgets_thinking, CHAT, ids, 0)


def test_only_places_past_what_is_kept_are_looked_for() -> None:
    ids = chatml(CHAT)
    rendered = []

    def counting(messages: Sequence[Message]) -> list[int]:
        rendered.append(messages)
        return chatml(messages)

    assert all(place > 40 for place in parting_places(counting, CHAT, ids, 40))
    assert len(rendered) <= 4


def test_a_long_chat_is_rendered_a_few_times_only() -> None:
    chat = [Message("user", f"turn {number}") for number in range(100)]
    assert len(parting_places(chatml, chat, chatml(chat), 0)) == MAX_TURNS + 1


def test_a_template_that_refuses_gives_no_prefix() -> None:
    assert continued_prefix(refuses, CHAT, "x") == []
    assert parting_places(refuses, CHAT, chatml(CHAT), 0) == [0]


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [([], [], 0), ([1], [], 0), ([1, 2], [1, 2], 2), ([1, 2, 3], [1, 2], 2), ([1, 2], [1, 3], 1), ([1], [2], 0)],
)
def test_the_common_prefix(one: list[int], other: list[int], common: int) -> None:
    assert common_prefix(one, other) == common_prefix(other, one) == common
