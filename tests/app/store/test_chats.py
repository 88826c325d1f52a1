"""Chats, messages and settings: what is written is there, also after opening the file again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.chat import Attachment, untitled
from app.core.sanitize import clean_text
from app.store import ChatStore, StoreError

anything = st.text(st.characters(exclude_categories=())) | st.text("a\ud800\udc00\x00\r\n")


def test_a_chat_and_its_messages_are_there_after_opening_the_file_again(store: ChatStore, path: Path):
    chat = store.create_chat("Rainbows")
    asked = store.add_message(chat.id, "user", "Explain rainbows", "sent")
    answer = store.add_message(chat.id, "assistant", "", "streaming")
    store.update_message(answer.id, "Sunlight", "done", {"decode_tok_s": 41.25, "fallback": None})
    store.close()
    again = ChatStore(path)
    assert [kept.title for kept in again.chats()] == ["Rainbows"]
    first, second = again.messages(chat.id)
    assert first == asked
    assert (second.id, second.content, second.state) == (answer.id, "Sunlight", "done")
    assert second.statistics == {"decode_tok_s": 41.25, "fallback": None}
    assert again.moved_aside is None
    again.close()


def test_the_chat_last_written_to_comes_first(store: ChatStore):
    chats = [store.create_chat(name) for name in ("a", "b", "c")]
    assert [chat.title for chat in store.chats()] == ["c", "b", "a"]
    store.add_message(chats[0].id, "user", "hi", "sent")
    assert [chat.title for chat in store.chats()] == ["a", "c", "b"]


def test_renaming_keeps_the_place_and_never_leaves_an_empty_title(store: ChatStore):
    chat, _ = store.create_chat("a"), store.create_chat("b")
    store.rename_chat(chat.id, "  two\nlines ")
    assert [kept.title for kept in store.chats()] == ["b", "two lines"]
    store.rename_chat(chat.id, " \n")
    assert store.chat(chat.id).title == untitled()


def test_an_update_changes_only_what_is_given(store: ChatStore):
    chat = store.create_chat("a")
    message = store.add_message(chat.id, "assistant", "text", "streaming", {"cycles": 1})
    assert store.update_message(message.id, state="stopped")
    assert store.update_message(message.id)
    (kept,) = store.messages(chat.id)
    assert (kept.content, kept.state, kept.statistics) == ("text", "stopped", {"cycles": 1})


def test_a_deleted_chat_is_gone_from_everywhere_and_takes_no_more_messages(store: ChatStore):
    chat, other = store.create_chat("a"), store.create_chat("b")
    message = store.add_message(chat.id, "user", "text", "sent")
    store.add_message(other.id, "user", "stays", "sent")
    store.delete_chat(chat.id)
    store.delete_chat(chat.id)
    assert store.chat(chat.id) is None and store.chats() == [store.chat(other.id)]
    assert store.search("text") == []
    assert store.asked_since(0) == [(other.id, message.id + 1)]
    with pytest.raises(StoreError, match="deleted"):
        store.add_message(chat.id, "user", "late", "sent")


def test_a_deleted_chat_comes_back_as_it_was_with_the_text_that_arrived_late(store: ChatStore):
    chat = store.create_chat("a", folder="Work", options={"temperature": 0.5})
    answer = store.add_message(chat.id, "assistant", "half", "streaming")
    store.pin_chat(chat.id, True)
    store.delete_chat(chat.id)
    assert store.update_message(answer.id, "half and more", "stopped")
    ((deleted, _when),) = store.deleted_chats()
    store.restore_chat(chat.id)
    assert store.deleted_chats() == [] and store.chats() == [deleted]
    assert (deleted.pinned, deleted.folder, deleted.options, deleted.leaf_id) == (True, "Work", {"temperature": 0.5}, answer.id)
    assert [(m.content, m.state) for m in store.messages(chat.id)] == [("half and more", "stopped")]


def test_deleting_a_message_takes_what_follows_it_and_can_be_taken_back(store: ChatStore):
    chat = store.create_chat("a")
    first = store.add_message(chat.id, "user", "question", "sent")
    answer = store.add_message(chat.id, "assistant", "sunlight", "done")
    other = store.add_message(chat.id, "assistant", "moonlight", "done", parent=first.id)
    store.add_message(chat.id, "user", "starlight", "sent", parent=answer.id)
    before = store.messages(chat.id)
    store.delete_messages(answer.id)
    assert store.messages(chat.id) == [first, other]
    assert store.search("sunlight") == store.search("starlight") == [] and len(store.search("moonlight")) == 1
    store.delete_messages(other.id)
    store.restore_messages(answer.id)
    assert store.messages(chat.id) == [message for message in before if message != other]


def test_ids_of_deleted_chats_and_messages_are_never_used_again(store: ChatStore):
    chat = store.create_chat("a")
    message = store.add_message(chat.id, "user", "x", "sent")
    store.delete_chat(chat.id)
    fresh = store.create_chat("b")
    assert fresh.id > chat.id
    assert store.add_message(fresh.id, "user", "x", "sent").id > message.id


def test_a_message_follows_the_end_of_the_branch_on_show_or_the_one_named(store: ChatStore):
    chat, other = store.create_chat("a"), store.create_chat("b")
    first = store.add_message(chat.id, "user", "1", "sent")
    store.add_message(other.id, "user", "elsewhere", "sent")
    second = store.add_message(chat.id, "assistant", "2", "done")
    again = store.add_message(chat.id, "assistant", "2 again", "done", parent=first.id)
    after = store.add_message(chat.id, "user", "3", "sent")
    store.set_leaf(chat.id, second.id)
    follows = store.add_message(chat.id, "user", "3 of the first answer", "sent")
    start = store.add_message(chat.id, "user", "another beginning", "sent", parent=None)
    assert [m.parent_id for m in (first, second, again, after, follows, start)] == [
        None, first.id, first.id, again.id, second.id, None,
    ]  # fmt: skip
    assert store.messages(chat.id) == [first, second, again, after, follows, start]
    assert store.chat(chat.id).leaf_id == start.id


def test_a_branch_whose_end_was_deleted_goes_on_from_the_newest_message(store: ChatStore):
    chat = store.create_chat("a")
    first = store.add_message(chat.id, "user", "1", "sent")
    store.delete_messages(store.add_message(chat.id, "assistant", "2", "done").id)
    assert store.add_message(chat.id, "assistant", "2 again", "done").parent_id == first.id


def test_pins_folders_and_options_are_kept(store: ChatStore):
    old, new = store.create_chat("old"), store.create_chat("new")
    store.pin_chat(old.id, True)
    store.move_chat(old.id, " Lease\nletters ")
    store.move_chat(new.id, "Other")
    store.set_options(new.id, {"system": "Be \ud800 brief", "temperature": 0.25})
    assert [(chat.title, chat.pinned, chat.folder) for chat in store.chats()] == [
        ("old", True, "Lease letters"), ("new", False, "Other"),
    ]  # fmt: skip
    assert store.chat(new.id).options == {"system": "Be \ufffd brief", "temperature": 0.25}
    store.rename_folder("Lease letters", "Other")
    assert [chat.folder for chat in store.chats()] == ["Other", "Other"]
    store.rename_folder("Other", "")
    store.pin_chat(old.id, False)
    assert [(chat.title, chat.folder) for chat in store.chats()] == [("new", ""), ("old", "")]


def test_attachments_are_kept_apart_from_the_text(store: ChatStore, path: Path):
    chat = store.create_chat("a")
    files = (Attachment("a.py", 'print("hi")\n\tx = "\\n"'), Attachment("虹.txt", ""), Attachment("a.pdf", "y", "pdf", 2, 9),
             Attachment("b.docx", "z", "docx"))
    message = store.add_message(chat.id, "user", "What is this?", "sent", attachments=files)
    assert message.attachments == files and message.content == "What is this?"
    store.close()
    again = ChatStore(path)
    assert again.messages(chat.id) == [message]
    again.close()


def test_only_streaming_answers_are_marked_interrupted_and_their_text_stays(store: ChatStore):
    chat = store.create_chat("a")
    store.add_message(chat.id, "user", "q", "sent")
    store.add_message(chat.id, "assistant", "half an", "streaming")
    store.add_message(chat.id, "assistant", "whole", "done")
    assert store.recover() == 1
    assert [(m.content, m.state) for m in store.messages(chat.id)] == [
        ("q", "sent"), ("half an", "interrupted"), ("whole", "done"),
    ]  # fmt: skip
    assert store.recover() == 0


def test_an_unknown_state_is_refused_and_changes_nothing(store: ChatStore):
    chat = store.create_chat("a")
    message = store.add_message(chat.id, "assistant", "text", "streaming")
    with pytest.raises(StoreError):
        store.update_message(message.id, "other", "no such state")  # type: ignore[arg-type]
    assert store.messages(chat.id) == [message]


def test_settings_keep_any_plain_value(store: ChatStore, path: Path):
    assert store.setting("draft.1") is None
    assert store.setting("draft.1", "none") == "none"
    for value in ("日本語 👩‍👩‍👧", 3, 0.5, None, ["a", {"b": False}]):
        store.set_setting("draft.1", value)
        assert store.setting("draft.1", "default") == value
    store.close()
    again = ChatStore(path)
    assert again.setting("draft.1") == ["a", {"b": False}]
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(anything)
def test_any_text_at_all_is_kept_clean_everywhere(store: ChatStore, text: str):
    chat = store.create_chat(text)
    message = store.add_message(chat.id, "user", text, "sent", {"reason": text})
    store.rename_chat(chat.id, text)
    store.set_setting("draft", {"text": text})
    store.search(text)
    assert store.messages(chat.id)[-1] == message
    assert message.content == clean_text(text)
    assert message.statistics == {"reason": clean_text(text)}
    assert store.setting("draft") == {"text": clean_text(text)}
    assert store.chat(chat.id).title.strip()


def test_five_megabytes_in_one_message_are_kept_whole(store: ChatStore):
    text = "日本語 and words " * 360_000
    chat = store.create_chat("big")
    message = store.add_message(chat.id, "user", text, "sent")
    assert len(text) > 5_000_000
    assert store.messages(chat.id)[0].content == message.content == text


def test_a_closed_store_may_be_closed_again(store: ChatStore):
    store.close()
    assert store.close() is None
