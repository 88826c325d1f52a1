"""The list of chats: searching, and renaming in place."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from app.services.engine_client import EngineState
from tests.gui.conftest import wait_ready


def test_searching_finds_chats_by_what_was_said(qtbot, window):
    store = window.services.store
    for title, text in (("Cooking", "How do I poach an egg?"), ("Weather", "Why do rainbows form?")):
        store.add_message(store.create_chat(title).id, "user", text, "sent")
    window.fill_chats()
    qtbot.keyClicks(window.sidebar.search, "poach")
    qtbot.waitUntil(lambda: window.sidebar.chats.titles() == ["Today", "Cooking"], timeout=2_000)
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: len(window.sidebar.chats.chat_ids()) == 2, timeout=2_000)


def test_a_search_without_a_hit_says_so(qtbot, window):
    window.services.store.create_chat("Cooking")
    window.fill_chats()
    qtbot.keyClicks(window.sidebar.search, "zebra")
    qtbot.waitUntil(lambda: window.sidebar.note.text() == "No chats found", timeout=2_000)
    assert window.sidebar.chats.titles() == [] and not window.sidebar.note.isHidden()
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: window.sidebar.note.isHidden(), timeout=2_000)


def test_escape_clears_the_search_before_it_stops_the_answer(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 60.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=5_000)
    search = window.sidebar.search
    search.setFocus()
    qtbot.keyClicks(search, "story")
    qtbot.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == "" and window.services.client.state is EngineState.DECODING
    qtbot.keyClick(search, Qt.Key.Key_Escape)
    wait_ready(qtbot, window.services.client)
    assert window.transcript.answers[-1].note_text == "Stopped"


def test_renaming_in_the_list_renames_the_chat(qtbot, window):
    chat = window.services.store.create_chat("Old name")
    window.fill_chats()
    rows = window.sidebar.chats.rows
    rows.setData(rows.index(1), "New name")
    qtbot.waitUntil(lambda: window.services.store.chat(chat.id).title == "New name", timeout=2_000)
    qtbot.waitUntil(lambda: "New name" in window.sidebar.chats.titles(), timeout=2_000)


def test_renaming_with_the_keyboard_renames_the_header_too(qtbot, window):
    window.composer.set_text("Old name")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.do.rename_chat()
    editor = window.sidebar.chats.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "New name")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.title.text() == "New name", timeout=2_000)
    assert window.sidebar.chats.titles() == ["Today", "New name"]
    assert window.sidebar.chats.viewport().findChild(QLineEdit) is None
