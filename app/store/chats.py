"""The chat store: every chat, message and small setting, committed to SQLite before a call returns."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from app.core.chat import Attachment, Chat, ChatMessage, Role, State
from app.core.sanitize import clean_text
from app.core.words import tr
from app.store.connection import open_database, transaction
from app.store.errors import StoreError, in_words
from app.store.purge import purge
from app.store.rows import (
    CHAT_COLUMNS,
    CHAT_WIDTH,
    MESSAGE_COLUMNS,
    attachments_json,
    chat_of,
    cleaned,
    folder_of,
    insert_chat,
    json_of,
    message_of,
    title_of,
    value_of,
)
from app.store.search import containing, excerpt, matching_messages, message_text

HIDDEN = 0.0  # as if deleted in 1970: what an import leaves when it is cut off is purged at the next start
Parent = int | None | Literal["leaf"]


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

    ``moved_aside`` is where a damaged file was put at opening, None if it was whole; ``saved_chats`` were read from it.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it and its folder. Raises ``StoreError``."""
        self._path = Path(path)
        with in_words(self._path):
            opened = open_database(self._path)
        self._db, self._indexed = opened.db, opened.indexed
        self.moved_aside, self.saved_chats = opened.moved_aside, opened.saved_chats

    def close(self) -> None:
        """Closes the file; may be called twice."""
        with in_words(self._path):
            self._db.close()

    @property
    def database(self) -> tuple[Path, sqlite3.Connection]:
        """The file and the one connection to it, for the other tables of this package."""
        return self._path, self._db

    # --- chats

    def create_chat(self, title: str, folder: str = "", options: Mapping[str, Any] | None = None) -> Chat:
        """A new, empty chat."""
        now, title, folder = time.time(), title_of(title), folder_of(folder)
        with in_words(self._path), transaction(self._db):
            cursor = self._db.execute(
                "INSERT INTO chats (title, created_at, updated_at, folder, options) VALUES (?, ?, ?, ?, ?)",
                (title, now, now, folder, json_of(options)),
            )
        assert cursor.lastrowid is not None
        return Chat(cursor.lastrowid, title, now, now, False, folder, None, cleaned(options or {}))

    def has_message(self, message_id: int) -> bool:
        """Whether a message is kept, deleted or not; also where that cannot be told."""
        try:
            return self._db.execute("SELECT 1 FROM messages WHERE id = ?", (message_id,)).fetchone() is not None
        except sqlite3.Error:
            return True

    def copy_chat(self, chat: Chat, messages: Sequence[ChatMessage]) -> Chat:
        """A new chat like ``chat``, written to now, with copies of ``messages``; whole or not at all."""
        now = time.time()
        with in_words(self._path), transaction(self._db):
            return insert_chat(self._db, replace(chat, created_at=now, updated_at=now), messages)

    def chat(self, chat_id: int) -> Chat | None:
        """One chat, None if there is none or it was deleted."""
        with in_words(self._path):
            query = f"SELECT {CHAT_COLUMNS} FROM chats WHERE id = ? AND deleted_at IS NULL"
            row = self._db.execute(query, (chat_id,)).fetchone()
        return chat_of(row) if row else None

    def chats(self) -> list[Chat]:
        """All chats, the pinned ones first, then the one last written to."""
        query = f"SELECT {CHAT_COLUMNS} FROM chats WHERE deleted_at IS NULL ORDER BY pinned DESC, updated_at DESC, id DESC"
        with in_words(self._path):
            return [chat_of(row) for row in self._db.execute(query)]

    def rename_chat(self, chat_id: int, title: str) -> None:
        """Changes the title and not the place in the list; nothing happens if the chat is gone."""
        self._change_chat(chat_id, "title", title_of(title))

    def pin_chat(self, chat_id: int, pinned: bool) -> None:
        """Keeps a chat above all others, or no longer."""
        self._change_chat(chat_id, "pinned", int(pinned))

    def move_chat(self, chat_id: int, folder: str) -> None:
        """Puts a chat into a folder; "" takes it out. A folder is there as long as a chat is in it."""
        self._change_chat(chat_id, "folder", folder_of(folder))

    def rename_folder(self, name: str, new: str) -> None:
        """Gives a folder another name; "" dissolves it. Its chats stay."""
        with in_words(self._path), transaction(self._db):
            self._db.execute("UPDATE chats SET folder = ? WHERE folder = ?", (folder_of(new), name))

    def set_options(self, chat_id: int, options: Mapping[str, Any]) -> None:
        """Keeps what is set for this chat alone."""
        self._change_chat(chat_id, "options", json_of(options))

    def set_leaf(self, chat_id: int, message_id: int | None) -> None:
        """Remembers the branch on show by the message at its end."""
        self._change_chat(chat_id, "leaf_id", message_id)

    def _change_chat(self, chat_id: int, column: str, value: Any) -> None:
        with in_words(self._path), transaction(self._db):
            self._db.execute(f"UPDATE chats SET {column} = ? WHERE id = ?", (value, chat_id))

    # --- deleting and taking it back

    def delete_chat(self, chat_id: int) -> None:
        """Takes a chat out of every list and search; ``restore_chat`` brings it back until it is purged."""
        with in_words(self._path), transaction(self._db):
            self._db.execute("UPDATE chats SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL", (time.time(), chat_id))

    def restore_chat(self, chat_id: int) -> None:
        """Brings a deleted chat back as it was."""
        self._change_chat(chat_id, "deleted_at", None)

    def deleted_chats(self) -> list[tuple[Chat, float]]:
        """The deleted chats that can be brought back, with the time of deletion, the newest first."""
        query = f"SELECT {CHAT_COLUMNS}, deleted_at FROM chats WHERE deleted_at > ? ORDER BY deleted_at DESC"
        with in_words(self._path):
            return [(chat_of(row[:-1]), row[-1]) for row in self._db.execute(query, (HIDDEN,))]

    def purge_chats(self, chat_ids: Sequence[int]) -> None:
        """Takes deleted chats off the disk with all that was kept of them."""
        with in_words(self._path):
            purge(self._db, self._indexed, chat_ids)

    def purge_deleted(self, before: float) -> bool:
        """Takes off the disk what was deleted before that time (seconds since 1970), and backups that are older; True where chats
        or messages were."""
        with in_words(self._path):
            old = self._db.execute("SELECT id FROM chats WHERE deleted_at < ?", (before,)).fetchall()
            purged = purge(self._db, self._indexed, [row[0] for row in old], before)
            for backup in self._path.parent.glob(f"{self._path.name}.backup-v*"):
                if backup.stat().st_mtime < before:
                    backup.unlink()
        return purged

    def delete_messages(self, message_id: int) -> None:
        """Takes a message and all that follows it, in every branch, out of its chat."""
        with in_words(self._path), transaction(self._db):
            self._db.execute(
                """WITH RECURSIVE gone(id) AS
                    (SELECT ?1 UNION SELECT messages.id FROM messages JOIN gone ON messages.parent_id = gone.id)
                UPDATE messages SET deleted_at = ?2 WHERE id IN gone AND deleted_at IS NULL""",
                (message_id, time.time()),
            )

    def restore_messages(self, message_id: int) -> None:
        """Brings back what ``delete_messages(message_id)`` took out."""
        with in_words(self._path), transaction(self._db):
            self._db.execute(
                """UPDATE messages SET deleted_at = NULL WHERE (chat_id, deleted_at) IN
                    (SELECT chat_id, deleted_at FROM messages WHERE id = ?)""",
                (message_id,),
            )

    def deleted_messages(self) -> list[tuple[Chat, ChatMessage, float]]:
        """The deleted messages that can be brought back with what followed them: (chat, message, time of deletion), newest first.

        One whose own parent is deleted, or whose chat is, comes back after that.
        """
        query = f"""SELECT {CHAT_COLUMNS}, {MESSAGE_COLUMNS}, messages.deleted_at FROM messages
            JOIN chats ON chats.id = messages.chat_id LEFT JOIN messages AS before ON before.id = messages.parent_id
            WHERE messages.deleted_at > ? AND before.deleted_at IS NULL AND chats.deleted_at IS NULL
            ORDER BY messages.deleted_at DESC, messages.id DESC"""
        with in_words(self._path):
            rows = self._db.execute(query, (HIDDEN,)).fetchall()
        return [(chat_of(row[:CHAT_WIDTH]), message_of(row[CHAT_WIDTH:-1]), row[-1]) for row in rows]

    def purge_messages(self, message_ids: Sequence[int]) -> None:
        """Takes deleted messages off the disk with all that followed them."""
        with in_words(self._path):
            purge(self._db, self._indexed, (), message_ids=message_ids)

    # --- messages

    def messages(self, chat_id: int) -> list[ChatMessage]:
        """The messages of a chat in all its branches, oldest first."""
        query = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE chat_id = ? AND deleted_at IS NULL ORDER BY id"
        with in_words(self._path):
            return [message_of(row) for row in self._db.execute(query, (chat_id,))]

    def asked_since(self, message_id: int) -> list[tuple[int, int]]:
        """(chat id, id of its newest user message) of every chat with a user message newer than ``message_id``, newest first."""
        query = """SELECT chat_id, max(messages.id) FROM messages JOIN chats ON chats.id = chat_id
            WHERE messages.id > ? AND role = 'user' AND trim(content) != ''
                AND messages.deleted_at IS NULL AND chats.deleted_at IS NULL
            GROUP BY chat_id ORDER BY max(messages.id) DESC"""
        with in_words(self._path):
            return self._db.execute(query, (message_id,)).fetchall()

    def add_message(
        self,
        chat_id: int,
        role: Role,
        content: str,
        state: State,
        statistics: Mapping[str, Any] | None = None,
        attachments: Sequence[Attachment] = (),
        parent: Parent = "leaf",
    ) -> ChatMessage:
        """Puts a message after ``parent`` (the end of the branch on show) and shows its branch; returns it as kept.

        Text is cleaned. ``parent`` None: another first message. Raises ``StoreError`` also if the chat is gone.
        """
        now, content, kept, files = time.time(), clean_text(content), json_of(statistics), attachments_json(attachments)
        with in_words(self._path), transaction(self._db):
            if not self._touch(chat_id, now):
                raise StoreError(tr("The chat was deleted: start a new one."))
            before = self._leaf(chat_id) if parent == "leaf" else parent
            cursor = self._db.execute(
                """INSERT INTO messages (chat_id, parent_id, role, content, state, created_at, statistics, attachments)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                (chat_id, before, role, content, state, now, kept, files),
            )
            self._db.execute("UPDATE chats SET leaf_id = ? WHERE id = ?", (cursor.lastrowid, chat_id))
        return message_of((cursor.lastrowid, chat_id, role, content, state, now, kept, before, files))

    def _leaf(self, chat_id: int) -> int | None:
        (leaf,) = self._db.execute("SELECT leaf_id FROM chats WHERE id = ?", (chat_id,)).fetchone()
        if self._db.execute("SELECT 1 FROM messages WHERE id = ? AND deleted_at IS NULL", (leaf,)).fetchone():
            return leaf
        newest = "SELECT max(id) FROM messages WHERE chat_id = ? AND deleted_at IS NULL"
        return self._db.execute(newest, (chat_id,)).fetchone()[0]

    def update_message(
        self,
        message_id: int,
        content: str | None = None,
        state: State | None = None,
        statistics: Mapping[str, Any] | None = None,
    ) -> bool:
        """Changes what is given; None leaves a field alone. False: the message is gone for good.

        While an answer streams, call this about once a second: each call writes the whole text.
        """
        given = {
            "content": None if content is None else clean_text(content),
            "state": state,
            "statistics": json_of(statistics),
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
        """Chats with every word of ``text`` in the title or in one message of any branch, the one last written to first."""
        words = clean_text(text).split()
        if not words:
            return []
        condition, parameters = matching_messages(words, self._indexed)
        titled, folded = containing("chats.title", words)
        query = f"""SELECT {CHAT_COLUMNS}, found.id, {message_text("messages")} FROM chats
            LEFT JOIN (SELECT chat_id, max(id) AS id FROM messages WHERE deleted_at IS NULL AND {condition} GROUP BY chat_id)
                AS found ON found.chat_id = chats.id
            LEFT JOIN messages ON messages.id = found.id
            WHERE chats.deleted_at IS NULL AND (found.id IS NOT NULL OR ({titled}))
            ORDER BY chats.updated_at DESC, chats.id DESC LIMIT ?"""
        with in_words(self._path):
            rows = self._db.execute(query, (*parameters, *folded, limit)).fetchall()
        return [SearchHit(chat_of(row[:CHAT_WIDTH]), row[-2], excerpt(row[-1], words) if row[-1] else "") for row in rows]

    # --- settings

    def setting(self, key: str, default: Any = None) -> Any:
        """A small value kept with the chats (last chat, drafts); ``default`` as for ``value_of``."""
        with in_words(self._path):
            row = self._db.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
        return value_of(row[0] if row else None, default)

    def set_setting(self, key: str, value: Any) -> None:
        """Keeps ``value``, anything JSON can hold."""
        with in_words(self._path), transaction(self._db):
            self._db.execute(
                "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, json.dumps(cleaned(value))),
            )

    def _touch(self, chat_id: int, now: float) -> bool:
        """Moves a chat to the top of the list; False if there is no such chat, or it was deleted."""
        changed = self._db.execute("UPDATE chats SET updated_at = ? WHERE id = ? AND deleted_at IS NULL", (now, chat_id))
        return changed.rowcount > 0
