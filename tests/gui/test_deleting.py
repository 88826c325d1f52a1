"""Deleting chats and messages: at once, taken back with one click or key, gone from the disk only later or when asked."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt

from app.services.engine_client import EngineState
from app.services.shelf import KEPT_DAYS
from app.services.wiring import CHATS
from app.ui.deleted_dialog import DeletedDialog
from tests.gui.conftest import load, wait_ready
from tests.gui.test_branches import ask, say, shown

SECRET = "Xylophonschrank"


@pytest.fixture
def chat(qtbot, window, loader):
    say(loader, "One answer")
    ask(qtbot, window, "A question")
    return window.services.conversation.chat


def on_disk(folder) -> bytes:
    """All bytes of the chat file and what lies beside it."""
    return b"".join(file.read_bytes() for file in sorted(folder.glob(f"{CHATS}*")))


def test_a_deleted_chat_comes_back_with_one_click(qtbot, window, chat):
    window.do.delete_chat()
    assert window.services.store.chats() == [] and window.sidebar.chats.titles() == [] and window.services.conversation.chat is None
    assert window.banner.text == "Chat deleted." and window.banner.action.text() == "Undo"
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert window.services.conversation.chat.id == chat.id and shown(window) == ["A question", "One answer"]
    assert window.sidebar.chats.titles() == ["Today", "A question"] and window.banner.text == ""


def test_deleting_and_undo_by_keys_in_the_list_go_back_step_by_step(qtbot, window, chat):
    other = window.services.store.create_chat("Other")
    window.fill_chats()
    chats = window.sidebar.chats
    for each in (chat.id, other.id):
        chats.setCurrentIndex(chats.rows.index(chats.titles().index(window.services.store.chat(each).title)))
        qtbot.keyClick(chats, Qt.Key.Key_Delete)
    assert chats.chat_ids() == []
    qtbot.keyClick(chats, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert chats.chat_ids() == [other.id]
    qtbot.keyClick(chats, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert sorted(chats.chat_ids()) == [chat.id, other.id]
    qtbot.keyClick(chats, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert sorted(chats.chat_ids()) == [chat.id, other.id] and not window.actions_by_id["undo_delete"].isEnabled()


def test_undo_in_the_message_field_undoes_typing_and_no_deletion(qtbot, window, chat):
    window.do.delete_chat()
    edit = window.composer.edit
    edit.setFocus()
    qtbot.keyClicks(edit, "abc")
    qtbot.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert edit.toPlainText() != "abc" and window.services.store.chats() == []


def test_undo_in_an_empty_message_field_takes_back_the_deletion_that_is_told(qtbot, window, chat):
    edit = window.composer.edit
    for dismiss in (True, False):
        window.do.delete_chat()
        edit.setFocus()
        if dismiss:
            window.banner.hide()
        qtbot.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        assert len(window.services.store.chats()) == (0 if dismiss else 1)
        window.do.undo_delete()


def test_a_deleted_message_takes_what_follows_and_comes_back(qtbot, window, chat, loader):
    ask(qtbot, window, "Another question")
    window.branching.delete(window.services.conversation.messages[2].id)
    assert shown(window) == ["A question", "One answer"] and "Message deleted" in window.banner.text
    assert [m.content for m in window.services.store.messages(chat.id)] == ["A question", "One answer"]
    ask(qtbot, window, "Instead")
    window.do.undo_delete()
    assert shown(window) == ["A question", "One answer", "Another question", "One answer"]
    assert window.services.conversation.version_of(window.services.conversation.messages[2].id) == (1, 2)


def test_deleting_one_version_shows_the_other(qtbot, window, chat, loader):
    say(loader, "Two")
    window.do.answer_again()
    wait_ready(qtbot, window.services.client)
    window.branching.delete(window.services.conversation.messages[-1].id)
    assert shown(window) == ["A question", "One answer"]
    assert window.transcript._tools[window.services.conversation.messages[-1].id].place.isHidden()


def test_deleting_the_first_message_leaves_an_empty_chat_that_can_be_written_to(qtbot, window, chat):
    window.branching.delete(window.services.conversation.messages[0].id)
    assert window.services.conversation.messages == [] and window.stack.currentWidget() is window.empty
    ask(qtbot, window, "Again")
    assert shown(window) == ["Again", "One answer"] and window.services.conversation.chat.id == chat.id


def test_deleting_a_message_above_a_running_answer_stops_it_and_keeps_its_text(qtbot, window, chat, loader):
    loader.script.rate, loader.script.tokens = 30.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=20_000)
    window.branching.delete(talk.messages[2].id)
    wait_ready(qtbot, window.services.client)
    assert shown(window) == ["A question", "One answer"]
    window.do.undo_delete()
    assert talk.messages[-1].state == "stopped" and talk.messages[-1].content


@pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
def test_deleted_chats_are_listed_restored_and_deleted_for_good(qtbot, window, chat, tmp_path):
    store = window.services.store
    secret = store.create_chat("Secret")
    store.add_message(secret.id, "user", f"{SECRET} " * 50, "sent")
    store.set_setting(f"draft:{secret.id}", SECRET)
    for each in (chat.id, secret.id):
        window.services.shelf.delete(each)
    window.do.show_deleted()
    dialog = window.findChild(DeletedDialog)
    assert [dialog.chats.item(row).text().split(" (")[0] for row in range(2)] == ["Secret", "A question"]
    assert SECRET.encode() in on_disk(tmp_path)
    dialog.chats.setCurrentRow(0)
    qtbot.mouseClick(dialog.erase, Qt.MouseButton.LeftButton)
    assert SECRET.encode() not in on_disk(tmp_path) and store.search(SECRET) == []
    dialog.chats.setCurrentRow(0)
    qtbot.mouseClick(dialog.restore, Qt.MouseButton.LeftButton)
    assert dialog.chats.count() == 0 and not dialog.restore.isEnabled() and window.sidebar.chats.chat_ids() == [chat.id]
    assert window.services.shelf.deletions == []
    dialog.close()


@pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
def test_deleted_messages_are_listed_restored_and_deleted_for_good_after_a_restart_too(
    qtbot, make_services, make_window, tmp_path
):
    services = make_services()
    store = services.store
    chat = store.create_chat("Kept")
    question = store.add_message(chat.id, "user", "A question", "sent")
    answer = store.add_message(chat.id, "assistant", "An answer", "done")
    follow = store.add_message(chat.id, "user", "A second question", "sent")
    secret = store.add_message(chat.id, "assistant", f"{SECRET} " * 50, "done")
    services.conversation.open(chat.id)
    for message in (secret, follow, answer):
        services.shelf.delete_message(message.id)
    services.shutdown()
    again = make_services()
    window = make_window(again)
    window.do.open_chat(chat.id)
    assert shown(window) == ["A question"] and again.shelf.deletions == []

    def listed() -> list[str]:
        return [dialog.chats.item(row).text() for row in range(dialog.chats.count())]

    window.do.show_deleted()
    dialog = window.findChild(DeletedDialog)
    assert len(listed()) == 1 and listed()[0].startswith("“An answer” in Kept (message, deleted ")
    qtbot.mouseClick(dialog.restore, Qt.MouseButton.LeftButton)
    assert shown(window) == ["A question", "An answer"] and listed()[0].startswith("“A second question” in Kept")
    assert SECRET.encode() in on_disk(tmp_path)
    qtbot.mouseClick(dialog.erase, Qt.MouseButton.LeftButton)
    assert listed() == [] and dialog.note.text() == "Nothing was deleted."
    assert SECRET.encode() not in on_disk(tmp_path) and again.store.search("second") == []
    assert [message.id for message in again.store.messages(chat.id)] == [question.id, answer.id]
    dialog.close()


def test_taking_a_message_back_from_the_list_takes_the_offer_to_undo_away(qtbot, window, chat):
    window.services.conversation.open(chat.id)
    before = shown(window)
    window.do.delete_message()
    (deleted,) = window.services.shelf.all_deleted()
    window.services.shelf.restore(deleted.deletion.chat_id, deleted.deletion.message_id)
    assert shown(window) == before and window.services.shelf.deletions == [] and window.services.shelf.all_deleted() == []


def test_what_was_deleted_long_ago_goes_from_the_disk_at_the_next_start(qtbot, make_services, tmp_path, monkeypatch):
    services = make_services()
    store, now = services.store, time.time()
    chats = {days: store.create_chat(f"deleted {days} days ago") for days in (KEPT_DAYS + 1, KEPT_DAYS - 1)}
    kept = store.create_chat("kept")
    first = store.add_message(kept.id, "user", "stays", "sent")
    gone = store.add_message(kept.id, "assistant", SECRET, "done")
    store.add_message(chats[KEPT_DAYS + 1].id, "user", SECRET, "sent")
    for days, chat in chats.items():
        monkeypatch.setattr("app.store.chats.time.time", lambda days=days: now - days * 86_400)
        store.delete_chat(chat.id)
        if days > KEPT_DAYS:
            store.delete_messages(gone.id)
    monkeypatch.undo()
    services.shutdown()
    assert SECRET.encode() in on_disk(tmp_path)
    again = make_services()
    assert [chat.id for chat, _when in again.store.deleted_chats()] == [chats[KEPT_DAYS - 1].id]
    assert [message.id for message in again.store.messages(kept.id)] == [first.id]
    assert SECRET.encode() not in on_disk(tmp_path)


def test_deleting_the_chat_that_is_answering_is_at_once(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 30.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    window.do.delete_chat()
    assert window.services.store.chats() == [] and window.services.client.state is EngineState.STOPPING
    wait_ready(qtbot, window.services.client)
    window.do.undo_delete()
    assert window.services.conversation.messages[-1].state == "stopped"
    load(qtbot, window.services.client)


def test_the_offer_to_take_back_goes_with_what_was_taken_back(qtbot, window, chat):
    window.do.new_chat()
    ask(qtbot, window, "Another question")
    window.do.delete_chat()
    window.do.open_chat(chat.id)
    window.do.delete_chat()
    assert window.banner.text == "Chat deleted."
    window.do.undo_delete()
    assert window.banner.text == ""  # its button would bring the other chat back
    window.do.delete_chat()
    window.services.shelf.restore(chat.id)
    assert window.banner.text == "" and len(window.services.shelf.deletions) == 1


def test_what_went_for_good_with_the_message_before_it_is_not_offered_to_be_taken_back(qtbot, window):
    store, shelf = window.services.store, window.services.shelf
    chat = store.create_chat("Rainbows")
    first = store.add_message(chat.id, "user", "Question", "sent")
    second = store.add_message(chat.id, "assistant", "Answer", "done")
    window.do.open_chat(chat.id)
    shelf.delete_message(second.id)
    shelf.delete_message(first.id)
    shelf.delete_for_good([], [first.id])
    assert not store.has_message(second.id) and shelf.deletions == [] and not window.situation().has_deleted
