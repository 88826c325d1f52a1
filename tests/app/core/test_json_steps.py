"""Reading JSON in steps gives what reading it at once gives, and refuses what that refuses."""

from __future__ import annotations

import json
from collections.abc import Generator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.json_steps import Lists, read_object

LISTS: Lists = {"chats": {"messages": {}}, "messages": {}}
KEYS = st.sampled_from(["chats", "messages", "title", "", 'a "b" \\ ü'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=4), max_size=5)


def run(steps: Generator[int, None, dict[str, Any]]) -> tuple[dict[str, Any], list[int]]:
    places = []
    while True:
        try:
            places.append(next(steps))
        except StopIteration as end:
            return end.value, places


def read_at_once(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return ValueError
    return value if isinstance(value, dict) else ValueError


def read_in_steps(text: str) -> Any:
    try:
        return run(read_object(text, LISTS))[0]
    except ValueError:
        return ValueError


def without_lists_of_others(value: dict[str, Any]) -> bool:
    """Whether ``chats`` holds objects only, as in every exported file."""
    chats = value.get("chats")
    return not isinstance(chats, list) or all(isinstance(chat, dict) for chat in chats)


@given(OBJECTS.filter(without_lists_of_others), st.sampled_from([None, 2]))
def test_every_object_is_read_as_at_once(value: dict[str, Any], indent: int | None):
    assert read_in_steps(f" {json.dumps(value, indent=indent)}\n") == value


@example('{"messages": [1 2]}', 0, "")
@example('{"messages": [1,]}', 0, "")
@example('{"a": 1,}', 0, "")
@example('{"a" 1}', 0, "")
@example('{"a": 1} {', 0, "")
@example("[1]", 0, "")
@example("", 0, "")
@given(OBJECTS.filter(without_lists_of_others).map(json.dumps), st.integers(0, 200), st.text('{}[],:"1a \\', max_size=2))
def test_what_is_damaged_is_refused_as_at_once(text: str, place: int, put: str):
    for damaged in (text[:place] + put + text[place + 1 :], text[:place]):
        whole = read_at_once(damaged)
        if whole is ValueError or without_lists_of_others(whole):
            assert read_in_steps(damaged) == whole


def test_a_chat_that_is_no_object_is_refused():
    with pytest.raises(ValueError):
        run(read_object('{"chats": [[]]}', LISTS))


def test_each_message_of_each_chat_is_a_step_of_its_own():
    text = json.dumps({"chats": [{"messages": ["x" * 10] * 50, "title": "t"}] * 3})
    _value, places = run(read_object(text, LISTS))
    assert len(places) == 3 * 50 + 3 and places == sorted(places)
    assert max(after - before for before, after in pairwise(places)) < 50
