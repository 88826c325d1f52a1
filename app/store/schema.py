"""The tables, and the numbered steps that bring an older file up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable


def _tables(db: sqlite3.Connection) -> None:
    """Version 1. ``parent_id`` is the message before; two messages with one parent will be branches of a chat."""
    db.execute(
        """CREATE TABLE chats (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL)"""
    )
    db.execute(
        """CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat_id INTEGER NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
            parent_id INTEGER REFERENCES messages(id) ON DELETE SET NULL,
            role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
            content TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('sent', 'streaming', 'done', 'stopped', 'interrupted', 'failed')),
            created_at REAL NOT NULL,
            statistics TEXT)"""
    )
    db.execute("CREATE INDEX messages_of_chat ON messages(chat_id, id)")
    # Without it, deleting one message would scan the whole table for its children.
    db.execute("CREATE INDEX messages_of_parent ON messages(parent_id)")
    db.execute("CREATE INDEX messages_streaming ON messages(id) WHERE state = 'streaming'")
    db.execute("CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")


def _branches(db: sqlite3.Connection) -> None:
    """Version 2: branches, pins, folders, options and attachments; what is deleted stays for a while, marked.

    Until now every message followed the one before it, so that each chat is one chain, shown to its end.
    """
    for column in (
        "pinned INTEGER NOT NULL DEFAULT 0",
        "folder TEXT NOT NULL DEFAULT ''",
        "leaf_id INTEGER",
        "options TEXT",
        "deleted_at REAL",
    ):
        db.execute(f"ALTER TABLE chats ADD COLUMN {column}")
    for column in ("attachments TEXT", "deleted_at REAL"):
        db.execute(f"ALTER TABLE messages ADD COLUMN {column}")
    db.execute("UPDATE chats SET leaf_id = (SELECT max(id) FROM messages WHERE chat_id = chats.id)")
    db.execute("CREATE INDEX chats_deleted ON chats(deleted_at) WHERE deleted_at IS NOT NULL")
    db.execute("CREATE INDEX messages_deleted ON messages(deleted_at) WHERE deleted_at IS NOT NULL")


def _comparisons(db: sqlite3.Connection) -> None:
    """Version 3: the history of comparisons. ``record`` is JSON: prompt, pair, machine and both recordings."""
    db.execute("CREATE TABLE comparisons (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at REAL NOT NULL, record TEXT NOT NULL)")


def _long_messages(db: sqlite3.Connection) -> None:
    """Version 4: which messages are too long for the search index to hold all of them (see ``search.LONG``)."""
    db.execute(
        """CREATE INDEX messages_long ON messages(id)
            WHERE length(content) + coalesce(length(attachments), 0) > 100000"""
    )


# MIGRATIONS[n] brings a file from version n to n + 1. Never change a step that was released: append one.
MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_tables, _branches, _comparisons, _long_messages]
