"""The one error of the store, and how SQLite's errors are put into words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.os_words import reason
from app.core.words import mark, tr

_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_MESSAGES = {
    sqlite3.SQLITE_FULL: mark("The disk is full: free some space, then try again."),
    sqlite3.SQLITE_READONLY: mark("The chats in {path} cannot be written: make the file and its folder writable."),
    sqlite3.SQLITE_CANTOPEN: mark("The chats in {path} cannot be opened: make the file and its folder writable."),
    sqlite3.SQLITE_PERM: mark("The chats in {path} cannot be opened: make the file and its folder writable."),
    sqlite3.SQLITE_BUSY: mark("The chats are being written by another program: try again in a moment."),
    sqlite3.SQLITE_LOCKED: mark("The chats are being written by another program: try again in a moment."),
    sqlite3.SQLITE_TOOBIG: mark("The text is too long to keep: shorten it."),
    sqlite3.SQLITE_IOERR: mark("The disk of {path} does not take what is written: check its space and its health."),
    sqlite3.SQLITE_CORRUPT: mark("The chats in {path} are damaged: restart Slipstream, which sets the file aside."),
    sqlite3.SQLITE_NOTADB: mark("The chats in {path} are damaged: restart Slipstream, which sets the file aside."),
}


class StoreError(Exception):
    """Chats could not be read or written. ``str(error)`` is one line: what is wrong, and what to do next."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error means that the file's content is broken, not that it is busy or out of reach."""
    return primary_code(error) in _CORRUPT


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code, -1 where the error did not come from SQLite."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Turns SQLite's errors and the system's into ``StoreError``."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a closed store or the wrong thread: our fault, not the user's
    except sqlite3.Error as error:
        message = _MESSAGES.get(primary_code(error), mark("The chats in {path} cannot be used ({error}): restart Slipstream."))
        raise StoreError(tr(message, path=path, error=error)) from error
    except OSError as error:
        text = tr("The folder {folder} cannot be used ({reason}): make it writable.", folder=path.parent, reason=reason(error))
        raise StoreError(text) from error
