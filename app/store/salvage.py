"""Saves from a damaged chat file every chat and message that can still be read."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from app.core.chat import ROLES, STATES, title_from
from app.store.rows import title_of

MOST_PROBES = 200_000  # ids looked for one by one behind unreadable pages, some seconds of work
Row = dict[str, Any]
log = logging.getLogger(__name__)


def salvage(damaged: Path, db: sqlite3.Connection) -> int:
    """Copies what ``damaged`` still holds into the new, empty file ``db`` inside its open transaction; how many chats.

    The damaged file is only copied, never written to. Raises ``sqlite3.Error`` and ``OSError`` where ``db`` or the disk fails.
    """
    with tempfile.TemporaryDirectory(dir=damaged.parent, prefix=".salvage-") as folder:
        copy = Path(folder) / "copy"
        for suffix in ("", "-wal"):
            source = damaged.with_name(damaged.name + suffix)
            if source.exists():
                shutil.copyfile(source, f"{copy}{suffix}")
        with closing(sqlite3.connect(copy)) as old:
            old.execute("PRAGMA writable_schema = ON")  # reads a file that was cut off, too
            old.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return _copy(_Damaged(old), db)


class _Damaged:
    """Reads a database whose pages may be broken anywhere."""

    def __init__(self, db: sqlite3.Connection):
        self._db = db
        self._probes = 0

    def rows(self, table: str) -> Iterator[Row]:
        """Every row that can be read, by ascending id."""
        try:
            columns = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        except sqlite3.DatabaseError:
            return
        start, last = 1, self._last_id(table)
        while columns and start <= last:
            try:
                for row in self._db.execute(f"SELECT id, * FROM {table} WHERE id >= ? ORDER BY id", (start,)):
                    start = row[0] + 1
                    yield dict(zip(columns, row[1:], strict=True))
                return
            except sqlite3.DatabaseError:
                # sqlite3 reads one row ahead: the row before a broken page can be read alone only.
                found = self._next_readable(table, start, last)
                if found is None:
                    return
                start = found[0] + 1
                yield dict(zip(columns, found[1:], strict=True))

    def settings(self) -> Iterator[tuple[str, str]]:
        """The settings before the first broken page and those after the last one."""
        for order in ("ASC", "DESC"):
            try:
                yield from self._db.execute(f"SELECT key, value FROM settings ORDER BY key {order}")
            except sqlite3.DatabaseError as error:
                log.warning("settings are damaged: %s", error)

    def _last_id(self, table: str) -> int:
        for query in (f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'", f"SELECT max(id) FROM {table}"):
            try:
                row = self._db.execute(query).fetchone()
            except sqlite3.DatabaseError:
                continue
            if row and isinstance(row[0], int):
                return row[0]
        return MOST_PROBES

    def _next_readable(self, table: str, start: int, last: int) -> tuple[Any, ...] | None:
        """The first row from the id ``start`` that can be read, looked for one by one; None where there is none."""
        for each in range(start, last + 1):
            self._probes += 1
            if self._probes > MOST_PROBES:
                return None
            try:
                row = self._db.execute(f"SELECT id, * FROM {table} WHERE id = ?", (each,)).fetchone()
            except sqlite3.DatabaseError:
                continue
            if row is not None:
                return row
        return None


def _copy(old: _Damaged, db: sqlite3.Connection) -> int:
    # Every other table may point to a chat: one that is lost is made anew from its messages.
    chats = {row["id"]: row for row in old.rows("chats") if _is_time(row["created_at"]) and _is_time(row["updated_at"])}
    ends: dict[int, int] = {}
    for row in old.rows("messages"):
        if not _is_message(row):
            continue
        chat_id, at = row["chat_id"], row["created_at"]
        if chat_id not in chats:
            chats[chat_id] = {"id": chat_id, "title": title_from(row["content"]), "created_at": at, "updated_at": at}
        if chat_id not in ends:
            _insert(db, "chats", {**chats[chat_id], "title": title_of(str(chats[chat_id]["title"]))})
        known = db.execute("SELECT 1 FROM messages WHERE id = ? AND chat_id = ?", (row["parent_id"], chat_id)).fetchone()
        _insert(db, "messages", {**row, "parent_id": row["parent_id"] if known else ends.get(chat_id)})
        ends[chat_id] = row["id"]
    for chat_id, row in chats.items():
        if chat_id not in ends:
            _insert(db, "chats", {**row, "title": title_of(str(row["title"]))})
    for row in old.rows("comparisons"):
        if _is_json(row["record"]):
            _insert(db, "comparisons", row)
    for key, value in old.settings():
        if isinstance(key, str) and _is_json(value):
            db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (key, value))
    return db.execute("SELECT count(*) FROM chats WHERE deleted_at IS NULL").fetchone()[0]


def _insert(db: sqlite3.Connection, table: str, row: Row) -> None:
    """Writes the columns that the newest version has too; what is no valid JSON there is left out."""
    columns = {info[1] for info in db.execute(f"PRAGMA table_info({table})")}
    kept = {name: value for name, value in row.items() if name in columns and value is not None}
    for name in {"options", "statistics", "attachments"} & kept.keys():
        if not _is_json(kept[name]):
            del kept[name]
    names = ", ".join(kept)
    db.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(kept))})", tuple(kept.values()))


def _is_message(row: Row) -> bool:
    whole = isinstance(row["content"], str) and isinstance(row["chat_id"], int) and _is_time(row["created_at"])
    return whole and row["role"] in ROLES and row["state"] in STATES


def _is_time(value: Any) -> bool:
    return isinstance(value, float | int) and 0 <= value < 1e11


def _is_json(text: Any) -> bool:
    try:
        json.loads(text)
    except (ValueError, TypeError):
        return False
    return True
