"""Titles are short, whole words where there are words, and never empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.chat import TITLE_LENGTH, ChatMessage, request_messages, title_from, untitled
from engine import Message

FAMILY = "👩\u200d👩\u200d👧"


@given(st.text(st.characters(exclude_categories=())))
def test_a_title_is_one_short_line_that_can_be_seen(text: str):
    title = title_from(text)
    assert 0 < len(title) <= TITLE_LENGTH
    assert "\n" not in title and title == title.strip()
    assert any(char.isprintable() and char != " " for char in title)
    title.encode()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Explain rainbows", "Explain rainbows"),
        ("\n\n  First   line \nsecond", "First line"),
        ("", untitled()),
        (" \n\t\u200b\n", untitled()),
        ("Write a Python function that checks whether a string is a palindrome", "Write a Python function that checks…"),
        ("日本語" * 20, ("日本語" * 20)[:39] + "…"),
        ("x" * 50, "x" * 39 + "…"),
        (FAMILY * 20, FAMILY * 7 + "…"),
        ("🇩🇪" * 30, "🇩🇪" * 19 + "…"),
        ("a, " * 30, ("a, " * 13)[:-2] + "…"),
    ],
)
def test_titles_of_known_texts(text: str, title: str):
    assert title_from(text) == title


def test_the_engine_gets_every_turn_that_has_text():
    messages = [
        ChatMessage(1, 1, "user", "q", "sent", 0.0),
        ChatMessage(2, 1, "assistant", "half", "stopped", 0.0),
        ChatMessage(3, 1, "user", "again", "sent", 0.0),
        ChatMessage(4, 1, "assistant", " ", "failed", 0.0),
    ]
    assert request_messages(messages) == (Message("user", "q"), Message("assistant", "half"), Message("user", "again"))
