"""Takes deleted chats off the disk for good: out of the tables, the search index and the file's free pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from app.store.connection import transaction

_BELOW = """WITH RECURSIVE gone(id) AS
        (SELECT id FROM messages WHERE id = ? AND deleted_at IS NOT NULL
        UNION SELECT messages.id FROM messages JOIN gone ON messages.parent_id = gone.id WHERE deleted_at IS NOT NULL)
    SELECT id FROM gone"""


def purge(
    db: sqlite3.Connection, indexed: bool, chat_ids: Sequence[int], before: float = 0.0, message_ids: Sequence[int] = ()
) -> bool:
    """Removes those of ``chat_ids`` that are deleted, and of other chats what was deleted before that time (seconds since 1970)
    and those of ``message_ids`` that are deleted, with what followed them. False: there was nothing to remove.
    """
    lone = db.execute("SELECT id FROM messages WHERE deleted_at < ?", (before,)).fetchall()
    for message_id in message_ids:
        lone += db.execute(_BELOW, (message_id,)).fetchall()
    if not chat_ids and not lone:
        return False
    with transaction(db):
        for chat_id in chat_ids:
            gone = db.execute("DELETE FROM chats WHERE id = ? AND deleted_at IS NOT NULL", (chat_id,))
            if gone.rowcount:
                db.execute("DELETE FROM settings WHERE key IN (?, ?)", (f"draft:{chat_id}", f"edits:{chat_id}"))
        # What was written for them and not sent goes, too.
        edits = """UPDATE settings SET value = json_remove(value, '$."' || ?1 || '"')
            WHERE key = 'edits:' || (SELECT chat_id FROM messages WHERE id = ?1) AND json_valid(value)"""
        db.executemany(edits, lone)
        db.executemany("DELETE FROM messages WHERE id = ?", lone)
        if indexed:
            # The index only notes what is gone; merging it is what takes the words out.
            db.execute("INSERT INTO message_index(message_index) VALUES ('optimize')")
    # The log still has the old pages. Where somebody else reads they stay until the next time.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return True
