"""Chats, messages and settings: what is written is there, also after opening the file again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.chat import UNTITLED
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
    assert store.chat(chat.id).title == UNTITLED


def test_an_update_changes_only_what_is_given(store: ChatStore):
    chat = store.create_chat("a")
    message = store.add_message(chat.id, "assistant", "text", "streaming", {"cycles": 1})
    assert store.update_message(message.id, state="stopped")
    assert store.update_message(message.id)
    (kept,) = store.messages(chat.id)
    assert (kept.content, kept.state, kept.statistics) == ("text", "stopped", {"cycles": 1})


def test_a_deleted_chat_takes_its_messages_along_and_late_updates_are_told(store: ChatStore):
    chat, other = store.create_chat("a"), store.create_chat("b")
    message = store.add_message(chat.id, "assistant", "text", "streaming")
    store.add_message(other.id, "user", "stays", "sent")
    store.delete_chat(chat.id)
    store.delete_chat(chat.id)
    assert store.messages(chat.id) == []
    assert store.chat(chat.id) is None
    assert [kept.content for kept in store.messages(other.id)] == ["stays"]
    assert store.update_message(message.id, "late") is False
    with pytest.raises(StoreError, match="deleted"):
        store.add_message(chat.id, "user", "late", "sent")


def test_ids_of_deleted_chats_and_messages_are_never_used_again(store: ChatStore):
    chat = store.create_chat("a")
    message = store.add_message(chat.id, "user", "x", "sent")
    store.delete_chat(chat.id)
    fresh = store.create_chat("b")
    assert fresh.id > chat.id
    assert store.add_message(fresh.id, "user", "x", "sent").id > message.id


def test_each_message_knows_the_one_before_so_that_branches_can_come(store: ChatStore):
    chat, other = store.create_chat("a"), store.create_chat("b")
    first = store.add_message(chat.id, "user", "1", "sent")
    store.add_message(other.id, "user", "elsewhere", "sent")
    second = store.add_message(chat.id, "assistant", "2", "done")
    rows = dict(store._db.execute("SELECT id, parent_id FROM messages WHERE chat_id = ?", (chat.id,)))
    assert rows == {first.id: None, second.id: first.id}


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
