"""How chats and messages stand in the tables: columns to records and back."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from app.core.chat import Attachment, Chat, ChatMessage, attachments_of, untitled
from app.core.sanitize import clean_text

log = logging.getLogger(__name__)
NUMBERS, LISTS = {int, float, bool}, {list, tuple}
MESSAGE_COLUMNS = ", ".join(
    f"messages.{name}"
    for name in ("id", "chat_id", "role", "content", "state", "created_at", "statistics", "parent_id", "attachments")
)
CHAT_COLUMNS = ", ".join(
    f"chats.{name}" for name in ("id", "title", "created_at", "updated_at", "pinned", "folder", "leaf_id", "options")
)
CHAT_WIDTH = CHAT_COLUMNS.count(",") + 1


def value_of(text: str | None, default: Any = None) -> Any:
    """What JSON text holds; ``default`` where there is none, where it is damaged, or no list or object while ``default`` is one."""
    try:
        value = json.loads(text) if text else default
    except ValueError:
        log.warning("a damaged value among the chats is left out")
        return default
    return default if isinstance(default, dict | list) and not isinstance(value, type(default)) else value


def chat_of(row: Sequence[Any]) -> Chat:
    """A chat from its ``CHAT_COLUMNS``."""
    chat_id, title, created_at, updated_at, pinned, folder, leaf_id, options = row
    kept: dict[str, Any] = {}
    if options and options != "{}":  # of thousands of chats nearly all have none
        kept = value_of(options, kept)
    return Chat(chat_id, title, created_at, updated_at, bool(pinned), folder, leaf_id, kept)


def message_of(row: Sequence[Any]) -> ChatMessage:
    """A message from its ``MESSAGE_COLUMNS``."""
    message_id, chat_id, role, content, state, created_at, statistics, parent_id, attachments = row
    files = _files_of(attachments) if attachments else ()
    figures = value_of(statistics, {}) or None if statistics else None
    return ChatMessage(message_id, chat_id, role, content, state, created_at, figures, parent_id, files)


def insert_chat(db: sqlite3.Connection, chat: Chat, messages: Sequence[ChatMessage]) -> Chat:
    """Writes a whole chat under new ids inside the open transaction, and returns it as kept.

    Parents and ``chat.leaf_id`` are ids of ``messages``, which come parents first; others count as none. An answer that was
    being written is interrupted.
    """
    new: NewIds = {}
    kept = insert_head(db, chat)
    insert_messages(db, kept.id, messages, new)
    return insert_end(db, kept, new)


NewIds = dict[int | None, int | None]  # of messages that were written, by the ids they came with


def insert_head(db: sqlite3.Connection, chat: Chat, deleted_at: float | None = None) -> Chat:
    """Writes a chat as yet without messages."""
    row = (title_of(chat.title), chat.created_at, chat.updated_at, chat.pinned, folder_of(chat.folder), json_of(chat.options))
    columns = "title, created_at, updated_at, pinned, folder, options, deleted_at"
    chat_id = db.execute(f"INSERT INTO chats ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, deleted_at)).lastrowid
    assert chat_id is not None
    return replace(chat, id=chat_id, title=row[0], folder=row[4], options=cleaned(chat.options))


def insert_messages(db: sqlite3.Connection, chat_id: int, messages: Sequence[ChatMessage], new: NewIds) -> None:
    """Writes messages of a chat, and notes in ``new`` under which ids."""
    for message in messages:
        state = "interrupted" if message.state == "streaming" else message.state
        values = (chat_id, new.get(message.parent_id), message.role, clean_text(message.content), state, message.created_at)
        kept = (*values, json_of(message.statistics), attachments_json(message.attachments))
        query = """INSERT INTO messages (chat_id, parent_id, role, content, state, created_at, statistics, attachments)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
        new[message.id] = db.execute(query, kept).lastrowid


def insert_end(db: sqlite3.Connection, chat: Chat, new: NewIds) -> Chat:
    """Shows the branch of a chat that ``chat.leaf_id``, an id it came with, stands for; without one the newest."""
    leaf_id = new.get(chat.leaf_id, max(new.values(), default=None, key=lambda each: each or 0))
    db.execute("UPDATE chats SET leaf_id = ? WHERE id = ?", (leaf_id, chat.id))
    return replace(chat, leaf_id=leaf_id)


def title_of(title: str) -> str:
    """A title as it is kept: on one line, never empty."""
    return folder_of(title) or untitled()


def folder_of(name: str) -> str:
    """A folder's name as it is kept, on one line; "" for none."""
    return " ".join(clean_text(name).split())


def json_of(values: Mapping[str, Any] | None) -> str | None:
    """A mapping as JSON text with every text in it cleaned, None for None."""
    return None if values is None else json.dumps(cleaned(values))


def attachments_json(attachments: Sequence[Attachment]) -> str | None:
    """Attachments as JSON text, None where there are none. Where documents are among them, a list at the end says of each file what
    it is besides name and text.
    """
    values: list[Any] = [{"name": clean_text(each.name), "text": clean_text(each.text)} for each in attachments]
    if any(each.kind for each in attachments):
        values.append([[each.kind, each.pages, each.of_pages] for each in attachments])
    # Unescaped and with json's own spaces: search reads it in SQL.
    return json.dumps(values, ensure_ascii=False) if values else None


def _files_of(text: str) -> tuple[Attachment, ...]:
    values = value_of(text)
    about = values.pop() if isinstance(values, list) and values and isinstance(values[-1], list) else []
    for file, each in zip(values or [], about, strict=False):
        if isinstance(file, dict) and isinstance(each, list):
            file |= dict(zip(("kind", "pages", "of_pages"), each, strict=False))
    return attachments_of(values)


def cleaned(value: Any) -> Any:
    """``value`` with every text in it cleaned, as messages are."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if not isinstance(value, list | tuple) or _only_numbers(value):
        return value
    return [cleaned(item) for item in value]


def _only_numbers(values: Sequence[Any]) -> bool:
    """Whether there is no text in a list of numbers or of lists of them. A long answer's clock has ten thousands."""
    kinds = set(map(type, values))
    if kinds <= LISTS:
        kinds = set(map(type, chain.from_iterable(values)))
    return kinds <= NUMBERS
