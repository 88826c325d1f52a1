"""Opens the chat file: pragmas, the check for damage, the backup and the steps to the newest version."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.core.words import tr
from app.store import schema
from app.store.errors import StoreError, is_damage, primary_code
from app.store.salvage import salvage
from app.store.search import folded, has_fts5, index_is_prepared, prepare_index

# How long a call waits for another process's write. Writes take milliseconds; this is for a machine under load.
BUSY_S = 5.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """An open chat file. ``moved_aside`` is where a damaged one was put, ``saved_chats`` how many chats were read from it."""

    db: sqlite3.Connection
    indexed: bool
    moved_aside: Path | None = None
    saved_chats: int = 0


def open_database(path: Path) -> Opened:
    """Opens or makes ``path``; a damaged file is set aside and what can be read of it is saved into a new one.

    Raises ``StoreError``, ``sqlite3.Error`` and ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return Opened(*_open_checked(path))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    moved = _move_aside(path)
    db, indexed = _open_checked(path)
    try:
        with transaction(db):
            saved = salvage(moved, db)
    except (sqlite3.Error, OSError, OverflowError) as error:
        log.warning("nothing could be saved from %s: %s", moved, error)
        saved = 0
    return Opened(db, indexed, moved, saved)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: committed at the end, undone by any error."""
    # IMMEDIATE waits for another writer here; a transaction that only turns into a write later fails at once instead.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise


def _open_checked(path: Path) -> tuple[sqlite3.Connection, bool]:
    # Transactions are ours to begin: the module's own would begin too late to wait for another writer.
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.create_function("folded", 1, folded, deterministic=True)
        _set_pragmas(db)
        (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise _damaged(result)
        _bring_up_to_date(db, path)
        indexed = has_fts5(db)
    except BaseException:
        db.close()
        raise
    return db, indexed


def _set_pragmas(db: sqlite3.Connection) -> None:
    _switch_to_wal(db)
    # In WAL mode with NORMAL a commit is one write to the log and no flush to the disk; flushes come with checkpoints.
    # When the process dies in any way nothing committed is lost, since the system has it. A power cut or a crash of
    # the system can cost the commits since the last checkpoint (about 4 MB of writes), never the soundness of the file.
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA checkpoint_fullfsync = ON")  # macOS only: a plain flush there may stay in the drive's cache
    db.execute("PRAGMA wal_autocheckpoint = 1000")
    db.execute("PRAGMA journal_size_limit = 16777216")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, not only marked as free


def _switch_to_wal(db: sqlite3.Connection) -> None:
    """Two programs opening a new file at once: the switch fails without waiting, so wait here."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    version, newest = _version(db), len(schema.MIGRATIONS)
    if version > newest:
        raise StoreError(tr("The chats in {path} were written by a newer Slipstream: update this one.", path=path))
    if version == newest and index_is_prepared(db):
        return  # nothing is written, so that chats can be read while the disk is full
    if 0 < version < newest:
        _back_up(db, path, version)
    with transaction(db):
        # Read again: another process may have done the work while this one waited.
        for step in range(_version(db), newest):
            schema.MIGRATIONS[step](db)
        db.execute(f"PRAGMA user_version = {newest}")
        if not index_is_prepared(db):
            prepare_index(db)


def _version(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _back_up(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Copies the file as it is to "NAME.backup-vN" beside it, whole or not at all."""
    target = path.with_name(f"{path.name}.backup-v{version}")
    unfinished = target.with_name(f"{target.name}.part")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(unfinished)) as copy:
            db.backup(copy)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _move_aside(path: Path) -> Path:
    """Renames the damaged file, and its log with it, to a name that says when."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    target, count = path.with_name(f"{path.name}.damaged-{stamp}"), 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.damaged-{stamp}-{count}")
    path.replace(target)
    for suffix in ("-wal", "-shm"):
        extra = path.with_name(path.name + suffix)
        if extra.exists():
            extra.replace(target.with_name(target.name + suffix))
    return target


def _damaged(finding: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(finding)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
