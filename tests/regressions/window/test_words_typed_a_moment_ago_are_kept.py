"""What was typed just before another chat is opened or an answer is asked for counts, and goes to the chat it was typed in."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest

from tests.gui.conftest import wait_ready


@pytest.fixture
def chat(window):
    """An open chat, its options beside it."""
    store = window.services.store
    chat = store.create_chat("Here")
    store.add_message(chat.id, "user", "Why?", "sent")
    window.do.open_chat(chat.id)
    window.do.toggle_options()
    return chat


def type_number(window, name: str, text: str) -> None:
    field = window.options.panel.numbers[name]
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)


def test_instructions_stay_with_their_chat_when_another_is_opened_at_once(window, chat):
    QTest.keyClicks(window.options.panel.system, "In verse.")
    window.do.new_chat()
    assert window.services.store.chat(chat.id).options["system"] == "In verse."
    assert window.services.conversation.options.current.system == ""


def test_a_number_typed_without_return_stays_with_its_chat(qtbot, window, chat):
    type_number(window, "temperature", "0.9")
    window.do.new_chat()
    assert window.services.store.chat(chat.id).options["temperature"] == 0.9
    assert window.services.conversation.options.current.temperature == 0


def test_what_a_field_rounds_is_not_changed_by_leaving(window, chat):
    options = window.services.conversation.options
    options.set(options.current.with_values({"temperature": 0.333}))
    window.do.new_chat()
    assert window.services.store.chat(chat.id).options["temperature"] == 0.333


def test_an_answer_follows_what_was_set_just_before_it_was_asked_for(qtbot, window, loader, chat):
    QTest.keyClicks(window.options.panel.system, "In verse.")
    type_number(window, "temperature", "0.9")
    window.composer.set_text("Go on")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    request = loader.engines[-1].requests[-1]
    assert request.messages[0].content == "In verse." and request.temperature == 0.9


def test_a_draft_comes_back_with_its_deleted_chat(window, chat):
    QTest.keyClicks(window.composer.edit, "my words")
    window.do.delete_chat()
    assert window.composer.text() == ""
    window.do.undo_delete()
    assert window.composer.text() == "my words"
