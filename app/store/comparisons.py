"""The history of comparisons in the chat file: the newest ones, each whole enough to be replayed and reported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.store.chats import ChatStore
from app.store.connection import transaction
from app.store.errors import in_words
from app.store.rows import cleaned, value_of

KEPT = 100


class ComparisonStore:
    """Records by id, on the connection of ``chats``. Any call may raise ``StoreError``; a call that raised changed nothing."""

    def __init__(self, chats: ChatStore):
        self._path, self._db = chats.database

    def add(self, record: Mapping[str, Any]) -> int:
        """Keeps a record and lets go of the oldest beyond ``KEPT``; its id."""
        with in_words(self._path), transaction(self._db):
            text = json.dumps(cleaned(dict(record)))
            row = self._db.execute("INSERT INTO comparisons (created_at, record) VALUES (?, ?)", (record["at"], text))
            self._db.execute(
                "DELETE FROM comparisons WHERE id NOT IN (SELECT id FROM comparisons ORDER BY id DESC LIMIT ?)", (KEPT,)
            )
        assert row.lastrowid is not None
        return row.lastrowid

    def ids(self) -> list[int]:
        """The id of every record, the newest first."""
        with in_words(self._path):
            return [row[0] for row in self._db.execute("SELECT id FROM comparisons ORDER BY id DESC")]

    def record(self, comparison_id: int) -> dict[str, Any] | None:
        """One record; None where there is none or it cannot be read."""
        with in_words(self._path):
            row = self._db.execute("SELECT record FROM comparisons WHERE id = ?", (comparison_id,)).fetchone()
        return value_of(row[0] if row else None)

    def delete(self, comparison_id: int) -> None:
        """Removes one; nothing happens if it is gone."""
        with in_words(self._path), transaction(self._db):
            self._db.execute("DELETE FROM comparisons WHERE id = ?", (comparison_id,))
