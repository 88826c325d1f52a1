"""open-webui/open-webui#4310, Capsize-Games/airunner#1263: a long chat made opening, typing and everything else slow.

What is measured in seconds is measured by tests/perf; this holds what makes it fast: only the end of a chat is laid out, and
nothing is parsed twice.
"""

from __future__ import annotations

import pytest

from app.core.blocks import BlockSplitter
from app.core.chat import Chat, ChatMessage
from app.ui.transcript import MOUNTED
from tests.gui.conftest import wait_laid_out, wait_ready

ANSWER = "Some **prose** of an answer.\n\n```py\nx = 1\n```\n"
MESSAGES = 1_000


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """Every piece of text that is parsed from here on."""
    pieces: list[str] = []
    feed = BlockSplitter.feed

    def noted(self, text: str) -> None:
        pieces.append(text)
        feed(self, text)

    monkeypatch.setattr(BlockSplitter, "feed", noted)
    return pieces


@pytest.fixture
def long_chat(window):
    messages = [
        ChatMessage(number, 0, "assistant", f"{ANSWER}{number}", "done", 0.0, None, number - 1)
        if number % 2
        else ChatMessage(number, 0, "user", f"Question {number}", "sent", 0.0, None, number - 1 if number else None)
        for number in range(MESSAGES)
    ]
    return window.services.store.copy_chat(Chat(0, "Long", 0.0, 0.0), messages)


def test_only_the_end_of_a_long_chat_is_laid_out(qtbot, window, long_chat, parsed):
    window.do.open_chat(long_chat.id)
    wait_laid_out(qtbot, window)
    assert window.transcript.count == MOUNTED
    assert len(parsed) == MOUNTED // 2 and parsed[0] == f"{ANSWER}{MESSAGES - 1}"


def test_opening_a_chat_asks_once_for_its_tokens(qtbot, window, long_chat, monkeypatch):
    client, asked = window.services.client, []
    qtbot.waitUntil(lambda: client._count_job is None and not window.writing._soon.isActive(), timeout=20_000)
    monkeypatch.setattr(client, "count", lambda messages, parts=(): asked.append(len(messages)))
    window.do.open_chat(long_chat.id)
    qtbot.waitUntil(lambda: bool(asked), timeout=20_000)
    qtbot.wait(50)
    assert asked == [MESSAGES]


def test_nothing_is_parsed_again_by_writing_sending_switching_and_reading_on(qtbot, window, long_chat, parsed, loader):
    window.do.open_chat(long_chat.id)
    wait_laid_out(qtbot, window)
    before = len(parsed)
    qtbot.keyClicks(window.composer.edit, "A new question")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    answer = "".join(parsed[before:])
    assert answer == window.services.conversation.messages[-1].content
    window.do.answer_again()
    wait_ready(qtbot, window.services.client)
    window.do.step_version(-1)
    assert "".join(parsed[before:]) == answer * 3  # another answer, and the first one shown again
    before = len(parsed)
    window.transcript.mount_earlier()
    assert len(parsed) == before + MOUNTED // 2


def test_a_chat_written_in_for_long_lays_out_no_more_than_its_end(qtbot, window, loader):
    loader.script.tokens = 4
    for number in range(MOUNTED + 5):
        window.composer.set_text(f"Question {number}")
        window.do.send()
        wait_ready(qtbot, window.services.client)
    assert len(window.services.conversation.messages) == 2 * MOUNTED + 10
    assert window.transcript.count <= 2 * MOUNTED
    assert window.transcript.answers[-1].message == window.services.conversation.messages[-1]
