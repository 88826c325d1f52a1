"""In a chat too long to be mounted whole, what is being written survives every jump and every new message."""

from __future__ import annotations

import pytest

from app.ui.transcript import MOUNTED
from tests.gui.conftest import load, wait_ready


@pytest.fixture
def long_chat(window):
    """An open chat of 100 messages."""
    store = window.services.store
    chat = store.create_chat("Long")
    for number in range(100):
        role, state = ("assistant", "done") if number % 2 else ("user", "sent")
        store.add_message(chat.id, role, f"message {number}", state)
    window.do.open_chat(chat.id)
    return chat


def test_an_answer_is_whole_after_a_jump_away_from_it_and_back(qtbot, window, loader, long_chat):
    loader.script.rate, loader.script.tokens = 60.0, 400
    load(qtbot, window.services.client)
    window.composer.set_text("Go on")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: talk.active is not None and len(talk.active.text) > 100, timeout=20_000)
    window.do.open_chat(long_chat.id, talk.messages[0].id)
    before = len(talk.active.text)
    qtbot.waitUntil(lambda: len(talk.active.text) > before, timeout=20_000)
    window.transcript.follow()
    assert window.transcript.answers[-1].body.text == talk.active.text
    window.do.stop()
    wait_ready(qtbot, window.services.client)


def test_an_open_editor_stays_whatever_is_sent_meanwhile(qtbot, window, long_chat):
    talk = window.services.conversation
    edited = talk.messages[-MOUNTED].id
    assert window.transcript.edit(edited)
    window.transcript.editing.editor.edit.setPlainText("half an edit")
    for number in range(MOUNTED // 2 + 2):
        window.composer.set_text(f"question {number}")
        window.do.send()
        wait_ready(qtbot, window.services.client)
    assert window.transcript.mounted(edited) is not None
    assert window.transcript.editing.editor.text == "half an edit"
    window.transcript.editing.close()
    assert window.transcript.mounted(edited).isVisible()
