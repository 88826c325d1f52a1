"""The list of chats: searching, and renaming in place."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QLineEdit, QMenu

from app.services.engine_client import EngineState
from app.ui import shelf_view
from tests.gui.conftest import wait_laid_out, wait_ready


def test_searching_finds_chats_by_what_was_said(qtbot, window):
    store = window.services.store
    for title, text in (("Cooking", "How do I poach an egg?"), ("Weather", "Why do rainbows form?")):
        store.add_message(store.create_chat(title).id, "user", text, "sent")
    window.fill_chats()
    qtbot.keyClicks(window.sidebar.search, "poach")
    qtbot.waitUntil(lambda: window.sidebar.chats.titles() == ["Today", "Cooking"], timeout=20_000)
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: len(window.sidebar.chats.chat_ids()) == 2, timeout=20_000)


def test_a_search_without_a_hit_says_so(qtbot, window):
    window.services.store.create_chat("Cooking")
    window.fill_chats()
    qtbot.keyClicks(window.sidebar.search, "zebra")
    qtbot.waitUntil(lambda: window.sidebar.note.text() == "No chats found", timeout=20_000)
    assert window.sidebar.chats.titles() == [] and not window.sidebar.note.isHidden()
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: window.sidebar.note.isHidden(), timeout=20_000)


def test_escape_clears_the_search_before_it_stops_the_answer(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 60.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
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
    qtbot.waitUntil(lambda: window.services.store.chat(chat.id).title == "New name", timeout=20_000)
    qtbot.waitUntil(lambda: "New name" in window.sidebar.chats.titles(), timeout=20_000)


def test_renaming_goes_on_where_it_is_asked_for_again_and_ends_where_another_is_renamed(qtbot, window, capfd):
    store = window.services.store
    first, second = store.create_chat("First"), store.create_chat("Second")
    window.fill_chats()
    chats = window.sidebar.chats
    window.activateWindow()
    chats.setFocus()
    qtbot.waitUntil(chats.hasFocus)
    chats.edit_chat(first.id)
    editor = chats.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "Half a na")
    chats.edit_chat(first.id)
    qtbot.keyClicks(editor, "me")
    assert editor.text() == "Half a name"
    chats.edit_chat(second.id)
    qtbot.waitUntil(lambda: store.chat(first.id).title == "Half a name")
    qtbot.waitUntil(lambda: [line.text() for line in chats.viewport().findChildren(QLineEdit) if line.isVisible()] == ["Second"])
    assert "editing failed" not in capfd.readouterr().err


def test_renaming_with_the_keyboard_renames_the_header_too(qtbot, window):
    window.composer.set_text("Old name")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.do.rename_chat()
    editor = window.sidebar.chats.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "New name")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.title.text() == "New name", timeout=20_000)
    assert window.sidebar.chats.titles() == ["Today", "New name"]
    assert window.sidebar.chats.viewport().findChild(QLineEdit) is None


def test_the_arrow_keys_go_from_chat_to_chat_and_return_goes_to_the_message_field(qtbot, window):
    first, second = (window.services.store.create_chat(title) for title in ("First", "Second"))
    window.fill_chats()
    chats = window.sidebar.chats
    chats.setFocus()
    qtbot.keyClick(chats, Qt.Key.Key_Down)
    assert window.services.conversation.chat.id == second.id and chats.hasFocus()
    qtbot.keyClick(chats, Qt.Key.Key_Down)
    assert window.services.conversation.chat.id == first.id and chats.hasFocus()
    qtbot.keyClick(chats, Qt.Key.Key_Return)
    assert window.composer.edit.hasFocus()


def click(qtbot, chats, title: str) -> None:
    """Clicks on a row of the list."""
    place = chats.visualRect(chats.rows.index(chats.titles().index(title))).center()
    qtbot.mouseClick(chats.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_a_click_opens_a_chat_and_goes_to_the_message_field(qtbot, window):
    chat = window.services.store.create_chat("First")
    window.fill_chats()
    click(qtbot, window.sidebar.chats, "First")
    assert window.services.conversation.chat.id == chat.id and window.composer.edit.hasFocus()


def folder_of(window, chat) -> str:
    return window.services.store.chat(chat.id).folder


def test_chats_are_put_into_folders_by_menu_and_the_new_folder_is_named_in_the_list(qtbot, window):
    chats, store = window.sidebar.chats, window.services.store
    first, second = store.create_chat("First"), store.create_chat("Second")
    window.fill_chats()
    menu = chats.chat_menu(chats.rows.rows[2])
    move = next(action.menu() for action in menu.actions() if action.menu() is not None)
    next(action for action in move.actions() if action.text() == "New Folder …").trigger()
    editor = chats.viewport().findChild(QLineEdit)
    editor.selectAll()
    qtbot.keyClicks(editor, "Work")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: chats.titles() == ["Folders", "Work", "First", "Today", "Second"], timeout=20_000)
    assert folder_of(window, first) == "Work"
    move = next(a.menu() for a in chats.chat_menu(chats.rows.rows[4]).actions() if a.menu() is not None)
    next(action for action in move.actions() if action.text() == "Work").trigger()
    assert folder_of(window, second) == "Work" and chats.titles() == ["Folders", "Work", "Second", "First"]


def test_chats_are_dragged_into_folders_and_out_of_them(qtbot, window):
    chats, store = window.sidebar.chats, window.services.store
    chat, other = store.create_chat("First"), store.create_chat("Second", folder="Work")
    window.fill_chats()
    rows = chats.rows
    assert (
        rows.flags(rows.index(2)) & Qt.ItemFlag.ItemIsDragEnabled and not rows.flags(rows.index(0)) & Qt.ItemFlag.ItemIsDragEnabled
    )
    data = rows.mimeData([rows.index(chats.titles().index("First"))])
    rows.dropMimeData(data, Qt.DropAction.MoveAction, -1, -1, rows.index(chats.titles().index("Work")))
    assert folder_of(window, chat) == "Work" and chats.titles() == ["Folders", "Work", "Second", "First"]
    data = rows.mimeData([rows.index(2)])
    rows.dropMimeData(data, Qt.DropAction.MoveAction, -1, -1, QModelIndex())
    assert folder_of(window, other) == "" and chats.titles() == ["Folders", "Work", "First", "Today", "Second"]


def test_a_folder_is_closed_opened_renamed_and_removed_and_its_chats_stay(qtbot, window, make_window):
    chats, store = window.sidebar.chats, window.services.store
    chat = store.create_chat("First", folder="Work")
    window.fill_chats()
    click(qtbot, chats, "Work")
    assert chats.titles() == ["Folders", "Work"]
    assert make_window(window.services).sidebar.chats.titles() == ["Folders", "Work"]  # kept for the next start
    chats.setCurrentIndex(chats.rows.index(1))
    qtbot.keyClick(chats, Qt.Key.Key_Space)
    assert chats.titles() == ["Folders", "Work", "First"]
    chats.rows.setData(chats.rows.index(1), "Home")
    qtbot.waitUntil(lambda: folder_of(window, chat) == "Home", timeout=20_000)
    remove = chats.folder_menu(chats.rows.rows[1]).actions()[-1]
    assert remove.text() == "Remove Folder, Keep Chats"
    remove.trigger()
    assert folder_of(window, chat) == "" and chats.titles() == ["Today", "First"]


def test_a_pinned_chat_stays_on_top_until_it_is_unpinned(qtbot, window):
    chats, store = window.sidebar.chats, window.services.store
    first, _second = store.create_chat("First"), store.create_chat("Second")
    window.fill_chats()
    next(a for a in chats.chat_menu(chats.rows.rows[2]).actions() if a.text() == "Pin").trigger()
    assert chats.titles() == ["Pinned", "First", "Today", "Second"]
    window.do.open_chat(first.id)
    window.do.pin_chat()
    assert chats.titles() == ["Today", "Second", "First"]


def test_a_refill_while_a_title_is_edited_waits_for_its_end(qtbot, window):
    chats, store = window.sidebar.chats, window.services.store
    chat = store.create_chat("First")
    window.fill_chats()
    chats.edit_chat(chat.id)
    editor = chats.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "Half a na")
    store.create_chat("Meanwhile")
    window.fill_chats()
    assert chats.viewport().findChild(QLineEdit) is editor and editor.text() == "Half a na"
    qtbot.keyClicks(editor, "me")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: chats.titles() == ["Today", "Meanwhile", "Half a name"], timeout=20_000)


def test_a_hit_opens_its_chat_on_its_branch_and_is_marked(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    question = store.add_message(chat.id, "user", "Where is the needle?", "sent")
    hidden = store.add_message(chat.id, "assistant", "The needle 針 lies here", "done")
    for number in range(100):
        store.add_message(
            chat.id,
            "user" if number % 2 else "assistant",
            f"message {number}",
            "done",
            parent=question.id if not number else "leaf",
        )
    chats, transcript = window.sidebar.chats, window.transcript
    window.sidebar.search.setText("針")
    qtbot.waitUntil(lambda: chats.titles() == ["Today", "Long"], timeout=20_000)
    assert chats.rows.rows[1].excerpt == "The needle 針 lies here"
    click(qtbot, chats, "Long")
    assert [message.id for message in window.services.conversation.messages] == [question.id, hidden.id]
    mark = transcript._mark
    assert mark is not None and mark.target is transcript._mounted[hidden.id] and mark.isVisible()
    assert mark.geometry() == mark.target.geometry()
    window.transcript.clear_mark()
    click(qtbot, chats, "Long")
    assert transcript._mark is not None  # the chat is open already


def test_a_hit_far_up_in_a_long_chat_is_mounted_with_what_is_around_it(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    ids = [store.add_message(chat.id, "user" if n % 2 else "assistant", f"message {n}\n" * 5, "done").id for n in range(300)]
    window.do.open_chat(chat.id, ids[50])
    transcript = window.transcript
    qtbot.waitUntil(lambda: not transcript._mounted[ids[50]].visibleRegion().isEmpty(), timeout=20_000)
    assert transcript.count == 40 and ids[299] not in transcript._mounted and not transcript.following
    transcript.mount_later()
    assert transcript.count == 80 and ids[109] in transcript._mounted
    transcript.follow()
    wait_laid_out(qtbot, window)
    assert transcript.count == 40 and ids[299] in transcript._mounted and transcript.following


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_a_chat_is_moved_without_a_mouse(qtbot, window):
    chats, store = window.sidebar.chats, window.services.store
    chat = store.create_chat("First")
    store.create_chat("Second", folder="Work")
    window.fill_chats()
    window.do.open_chat(chat.id)
    window.actions_by_id["move_chat"].trigger()
    menu = chats.findChild(QMenu)
    assert [action.text() for action in menu.actions()] == ["Work", "New Folder …", "No Folder"]
    menu.actions()[0].trigger()
    menu.close()
    assert folder_of(window, chat) == "Work"


def test_return_in_the_search_field_opens_the_first_hit(qtbot, window):
    store = window.services.store
    for text in ("rain", "snow"):
        store.add_message(store.create_chat(text.title()).id, "user", text, "sent")
    for _ in range(2):  # the second time it is the open one
        window.transcript.clear_mark()
        window.sidebar.search.clear()
        qtbot.keyClicks(window.sidebar.search, "rain")
        qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Return)
        assert window.title.text() == "Rain" and window.transcript._mark is not None


def test_an_empty_list_says_what_comes_there(qtbot, window):
    assert window.sidebar.note.text() == "Your chats will be listed here." and not window.sidebar.note.isHidden()
    window.services.store.create_chat("First")
    window.fill_chats()
    assert window.sidebar.note.isHidden()


@pytest.mark.parametrize("left_in_front", [False, True])
def test_the_days_of_the_list_are_right_after_midnight_also_in_a_window_that_stayed_in_front(
    qtbot, qapp, make_window, services, monkeypatch, left_in_front
):
    monkeypatch.setattr(shelf_view, "DAY_CHECK_MS", 20)
    window = make_window(services)
    window.services.store.create_chat("Rainbows")
    window.fill_chats()
    assert window.sidebar.chats.titles() == ["Today", "Rainbows"]

    class Tomorrow(date):
        @classmethod
        def today(cls):
            return date.today() + timedelta(days=1)

    monkeypatch.setattr(shelf_view, "date", Tomorrow)
    if not left_in_front:
        qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
        assert window.sidebar.chats.titles() == ["Yesterday", "Rainbows"]
    qtbot.waitUntil(lambda: window.sidebar.chats.titles() == ["Yesterday", "Rainbows"], timeout=20_000)
