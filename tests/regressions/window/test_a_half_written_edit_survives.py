"""Words put into an earlier message and not sent yet are kept like a draft: over other chats, a quit, and an abort."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest

from app.ui.composer import SETTLE_MS


@pytest.fixture
def chat(window):
    """An open chat of one question."""
    store = window.services.store
    chat = store.create_chat("Here")
    store.add_message(chat.id, "user", "Why?", "sent")
    window.do.open_chat(chat.id)
    return chat


def write(window, text: str) -> None:
    """Types into the last question, with the keyboard."""
    window.do.edit_message()
    editor = window.transcript.editing.editor.edit
    editor.selectAll()
    QTest.keyClicks(editor, text)


def kept(window, chat) -> dict[str, str]:
    return window.services.store.setting(f"edits:{chat.id}", {})


def test_it_is_there_after_a_restart(qtbot, window, chat, make_services, make_window):
    write(window, "Why not?")
    window.retire()
    assert window.services.shutdown(20.0)
    again = make_window(make_services())
    again.do.edit_message()
    assert again.transcript.editing.editor.text == "Why not?"


def test_it_is_on_the_disk_a_moment_after_it_was_typed(qtbot, window, chat):
    write(window, "Why not?")
    qtbot.waitUntil(lambda: kept(window, chat) != {}, timeout=10 * SETTLE_MS)


def test_it_stays_with_its_chat(window, chat):
    write(window, "Why not?")
    window.do.new_chat()
    window.do.open_chat(chat.id)
    window.do.edit_message()
    assert window.transcript.editing.editor.text == "Why not?"


@pytest.mark.parametrize("end", ["send", "cancel"])
def test_sent_or_cancelled_nothing_of_it_stays(qtbot, window, chat, end):
    write(window, "Why not?")
    editor = window.transcript.editing.editor
    editor.submitted.emit(editor.text) if end == "send" else editor.cancelled.emit()
    qtbot.waitUntil(lambda: not window.services.client.busy, timeout=20_000)
    window.writing.save()
    assert kept(window, chat) == {}


def test_it_goes_for_good_with_its_chat(window, chat):
    write(window, "Why not?")
    window.do.delete_chat()
    assert kept(window, chat) != {}
    window.services.shelf.delete_for_good([chat.id])
    assert kept(window, chat) == {}


def test_it_comes_back_with_its_message_and_goes_for_good_with_it(window, chat):
    write(window, "Why not?")
    question = window.services.conversation.messages[0].id
    window.do.delete_message()
    window.do.undo_delete()
    window.do.edit_message()
    assert window.transcript.editing.editor.text == "Why not?"
    window.do.delete_message()
    window.writing.save()
    assert kept(window, chat) == {str(question): "Why not?"}
    window.services.shelf.delete_for_good([], [question])
    assert kept(window, chat) == {}
    window.writing.save()
    assert kept(window, chat) == {}
