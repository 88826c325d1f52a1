"""The chat store: every chat, message and small setting, committed to SQLite before a call returns."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.chat import UNTITLED, Chat, ChatMessage, Role, State
from app.core.sanitize import clean_text
from app.store.connection import open_database, transaction
from app.store.errors import StoreError, in_words
from app.store.search import containing, excerpt, matching_messages

_MESSAGE = "id, chat_id, role, content, state, created_at, statistics"
_CHAT = "chats.id, chats.title, chats.created_at, chats.updated_at"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A chat found by search; ``message_id`` is its newest matching message, ``excerpt`` the text around the match.

    Where only the title matched, ``message_id`` is None and ``excerpt`` empty.
    """

    chat: Chat
    message_id: int | None
    excerpt: str


class ChatStore:
    """Use from one thread. Any call may raise ``StoreError``; a call that raised changed nothing.

    ``moved_aside`` is where a damaged file was put at opening, None if it was whole.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it and its folder. Raises ``StoreError``."""
        self._path = Path(path)
        with in_words(self._path):
            self._db, self._indexed, self.moved_aside = open_database(self._path)

    def close(self) -> None:
        """Closes the file; may be called twice."""
        with in_words(self._path):
            self._db.close()

    # --- chats

    def create_chat(self, title: str) -> Chat:
        """A new, empty chat."""
        now, title = time.time(), _title(title)
        with in_words(self._path), transaction(self._db):
            cursor = self._db.execute("INSERT INTO chats (title, created_at, updated_at) VALUES (?, ?, ?)", (title, now, now))
        assert cursor.lastrowid is not None
        return Chat(cursor.lastrowid, title, now, now)

    def chat(self, chat_id: int) -> Chat | None:
        """One chat, None if there is none."""
        with in_words(self._path):
            row = self._db.execute(f"SELECT {_CHAT} FROM chats WHERE id = ?", (chat_id,)).fetchone()
        return Chat(*row) if row else None

    def chats(self) -> list[Chat]:
        """All chats, the one last written to first."""
        with in_words(self._path):
            return [Chat(*row) for row in self._db.execute(f"SELECT {_CHAT} FROM chats ORDER BY updated_at DESC, id DESC")]

    def rename_chat(self, chat_id: int, title: str) -> None:
        """Changes the title and not the place in the list; nothing happens if the chat is gone."""
        with in_words(self._path), transaction(self._db):
            self._db.execute("UPDATE chats SET title = ? WHERE id = ?", (_title(title), chat_id))

    def delete_chat(self, chat_id: int) -> None:
        """Deletes a chat with its messages; nothing happens if it is gone already."""
        with in_words(self._path), transaction(self._db):
            self._db.execute("DELETE FROM chats WHERE id = ?", (chat_id,))

    # --- messages

    def messages(self, chat_id: int) -> list[ChatMessage]:
        """The messages of a chat, oldest first."""
        with in_words(self._path):
            rows = self._db.execute(f"SELECT {_MESSAGE} FROM messages WHERE chat_id = ? ORDER BY id", (chat_id,))
            return [_message(row) for row in rows]

    def asked_since(self, message_id: int) -> list[tuple[int, int]]:
        """(chat id, id of its newest user message) of every chat with a user message newer than ``message_id``, newest first."""
        query = """SELECT chat_id, max(id) FROM messages WHERE id > ? AND role = 'user' AND trim(content) != ''
            GROUP BY chat_id ORDER BY max(id) DESC"""
        with in_words(self._path):
            return self._db.execute(query, (message_id,)).fetchall()

    def add_message(
        self, chat_id: int, role: Role, content: str, state: State, statistics: Mapping[str, Any] | None = None
    ) -> ChatMessage:
        """Appends a message and returns it as kept (text cleaned). Raises ``StoreError`` also if the chat is gone."""
        now, content, kept = time.time(), clean_text(content), _json(statistics)
        with in_words(self._path), transaction(self._db):
            if not self._touch(chat_id, now):
                raise StoreError("The chat was deleted: start a new one.")
            cursor = self._db.execute(
                """INSERT INTO messages (chat_id, parent_id, role, content, state, created_at, statistics)
                VALUES (?1, (SELECT max(id) FROM messages WHERE chat_id = ?1), ?2, ?3, ?4, ?5, ?6)""",
                (chat_id, role, content, state, now, kept),
            )
        assert cursor.lastrowid is not None
        return _message((cursor.lastrowid, chat_id, role, content, state, now, kept))

    def update_message(
        self,
        message_id: int,
        content: str | None = None,
        state: State | None = None,
        statistics: Mapping[str, Any] | None = None,
    ) -> bool:
        """Changes what is given; None leaves a field alone. False: the message is gone (its chat was deleted).

        While an answer streams, call this about once a second: each call writes the whole text.
        """
        given = {
            "content": None if content is None else clean_text(content),
            "state": state,
            "statistics": _json(statistics),
        }
        changes = {column: value for column, value in given.items() if value is not None}
        with in_words(self._path), transaction(self._db):
            row = self._db.execute("SELECT chat_id FROM messages WHERE id = ?", (message_id,)).fetchone()
            if row is None:
                return False
            if changes:
                columns = ", ".join(f"{column} = ?" for column in changes)
                self._db.execute(f"UPDATE messages SET {columns} WHERE id = ?", (*changes.values(), message_id))
            if state is not None:
                self._touch(row[0], time.time())
        return True

    def recover(self) -> int:
        """Marks answers that were streaming when the program ended as interrupted; how many. Call once at the start."""
        with in_words(self._path), transaction(self._db):
            return self._db.execute("UPDATE messages SET state = 'interrupted' WHERE state = 'streaming'").rowcount

    # --- search

    def search(self, text: str, limit: int = 50) -> list[SearchHit]:
        """Chats with every word of ``text`` in the title or in one message, the one last written to first."""
        words = clean_text(text).split()
        if not words:
            return []
        condition, parameters = matching_messages(words, self._indexed)
        titled, folded = containing("chats.title", words)
        query = f"""SELECT {_CHAT}, found.id, messages.content FROM chats
            LEFT JOIN (SELECT chat_id, max(id) AS id FROM messages WHERE {condition} GROUP BY chat_id) AS found
                ON found.chat_id = chats.id
            LEFT JOIN messages ON messages.id = found.id
            WHERE found.id IS NOT NULL OR ({titled})
            ORDER BY chats.updated_at DESC, chats.id DESC LIMIT ?"""
        with in_words(self._path):
            rows = self._db.execute(query, (*parameters, *folded, limit)).fetchall()
        return [SearchHit(Chat(*row[:4]), row[4], excerpt(row[5], words) if row[5] else "") for row in rows]

    # --- settings

    def setting(self, key: str, default: Any = None) -> Any:
        """A small value kept with the chats (last chat, drafts); ``default`` where there is none."""
        with in_words(self._path):
            row = self._db.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else default

    def set_setting(self, key: str, value: Any) -> None:
        """Keeps ``value``, anything JSON can hold."""
        with in_words(self._path), transaction(self._db):
            self._db.execute(
                "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, json.dumps(_cleaned(value))),
            )

    def _touch(self, chat_id: int, now: float) -> bool:
        """Moves a chat to the top of the list; False if there is no such chat."""
        return self._db.execute("UPDATE chats SET updated_at = ? WHERE id = ?", (now, chat_id)).rowcount > 0


def _title(title: str) -> str:
    return " ".join(clean_text(title).split()) or UNTITLED


def _json(statistics: Mapping[str, Any] | None) -> str | None:
    return None if statistics is None else json.dumps(_cleaned(statistics))


def _cleaned(value: Any) -> Any:
    """``value`` with every text in it cleaned, as messages are."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def _message(row: tuple[Any, ...]) -> ChatMessage:
    message_id, chat_id, role, content, state, created_at, statistics = row
    kept = json.loads(statistics) if statistics else None
    return ChatMessage(message_id, chat_id, role, content, state, created_at, kept)
