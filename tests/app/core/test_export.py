"""Exports hold the whole chat, and other programs can read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.chat import Chat, ChatMessage
from app.core.export import chat_json, chat_markdown, file_name
from app.core.figures import answer_statistics
from tests.app.core import recordings

CHAT = Chat(3, "Rainbows 虹", 0.0, 86400.0)
MESSAGES = [
    ChatMessage(1, 3, "system", "Be brief.", "sent", 0.0),
    ChatMessage(2, 3, "user", "Explain\n\n```py\nx\n```", "sent", 1.0),
    ChatMessage(3, 3, "assistant", "Light **bends**.\n", "stopped", 2.0, answer_statistics(recordings.ENDED[-1])),
    ChatMessage(4, 3, "user", "More", "sent", 3.0),
    ChatMessage(5, 3, "assistant", "", "failed", 4.0),
]


def test_markdown_reads_as_a_conversation():
    assert chat_markdown(CHAT, MESSAGES) == (
        "# Rainbows 虹\n\n*1970-01-01T00:00:00+00:00*\n\n## Instructions\n\nBe brief.\n\n## You\n\nExplain\n\n```py\nx\n```\n\n"
        "## Answer\n\nLight **bends**.\n\n*stopped · 79 tok/s · 4.8 tokens/cycle · 54 % accepted · first 0.2 s*\n\n"
        "## You\n\nMore\n\n## Answer\n\n*failed*\n"
    )


def test_json_holds_every_message_with_its_statistics():
    whole = json.loads(chat_json(CHAT, MESSAGES))
    assert whole["title"] == "Rainbows 虹"
    assert whole["updated_at"] == "1970-01-02T00:00:00+00:00"
    assert [(m["role"], m["content"], m["state"]) for m in whole["messages"]] == [(m.role, m.content, m.state) for m in MESSAGES]
    assert whole["messages"][2]["statistics"] == MESSAGES[2].statistics
    assert "虹" in chat_json(CHAT, MESSAGES)


def test_an_empty_chat_can_be_exported():
    assert chat_markdown(CHAT, []).startswith("# Rainbows")
    assert json.loads(chat_json(CHAT, []))["messages"] == []


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b: c?", "a b c.md"),
        ("..", "New chat.md"),
        ("CON", "_CON.md"),
        ("虹 👩\u200d👧", "虹 👩\u200d👧.md"),
        ("\x00", "New chat.md"),
    ],
)
def test_file_names_of_known_titles(title: str, name: str):
    assert file_name(Chat(1, title, 0, 0), "md") == name


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_any_title_makes_a_file_name_that_can_be_written(tmp_path_factory: pytest.TempPathFactory, title: str):
    file = tmp_path_factory.getbasetemp() / file_name(Chat(1, title, 0, 0), "json")
    file.write_text("{}")
    assert file.parent == tmp_path_factory.getbasetemp()
    file.unlink()
