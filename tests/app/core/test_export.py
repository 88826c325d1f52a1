"""Exports hold the whole chat, and other programs can read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.chat import Attachment, Chat, ChatMessage
from app.core.export import chat_markdown, file_name, with_ending
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
        "## Answer\n\nLight **bends**.\n\n*stopped · 79\u00a0tok/s · 4.8 tokens/cycle · 54\u00a0% accepted · first 0.2\u00a0s*\n\n"
        "## You\n\nMore\n\n## Answer\n\n*failed*\n"
    )


def test_markdown_shows_instructions_and_attachments():
    message = ChatMessage(1, 3, "user", "What is this?", "sent", 0.0, None, None, (Attachment("a.py", "x = '```'"),))
    chat = Chat(3, "T", 0.0, 0.0, options={"system": "Be brief."})
    assert chat_markdown(chat, [message]) == (
        "# T\n\n*1970-01-01T00:00:00+00:00*\n\n## Instructions\n\nBe brief.\n\n"
        "## You\n\n**a.py**\n\n````\nx = '```'\n````\n\nWhat is this?\n"
    )


def test_an_empty_chat_can_be_exported():
    assert chat_markdown(CHAT, []) == "# Rainbows 虹\n\n*1970-01-01T00:00:00+00:00*\n"


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


@pytest.mark.parametrize(
    ("name", "chosen", "path"),
    [
        ("/a/Rainbows", "JSON (*.json)", "/a/Rainbows.json"),
        ("/a/Rainbows", "Slipstream chat (*.slipchat)", "/a/Rainbows.slipchat"),
        ("/a/Rainbows.md", "JSON (*.json)", "/a/Rainbows.md"),
        ("/a/Rainbows", "", "/a/Rainbows"),
        ("/a/Rainbows.txt", "Markdown (*.md)", "/a/Rainbows.txt"),
        ("/a/Plan 3.5", "JSON (*.json)", "/a/Plan 3.5.json"),
        ("/a/Bill 1.2026", "Markdown (*.md)", "/a/Bill 1.2026.md"),
        ("/a/Ask Dr. Smith", "Slipstream chat (*.slipchat)", "/a/Ask Dr. Smith.slipchat"),
    ],
)
def test_a_name_without_an_ending_gets_the_one_that_was_chosen(name: str, chosen: str, path: str) -> None:
    assert with_ending(name, chosen) == Path(path)
