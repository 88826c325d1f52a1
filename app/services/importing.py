"""Takes in the chats of an exported file in small steps: all of them, or none."""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path

from app.core.archive import WholeChat, read_chats
from app.core.figures import percent
from app.core.words import tr
from app.store import ChatStore, StoreError
from app.store.imports import IncomingChats, characters

log = logging.getLogger(__name__)
Steps = Generator[str, None, list[int]]


def import_file(store: ChatStore, path: Path, notes: list[str]) -> Steps:
    """Yields lines about how far it is, and returns the ids of the chats. ``notes`` gets what of their options is not taken.

    Raises ``ArchiveError`` and ``StoreError``. What is thrown in, too, ends it with nothing left behind, which takes more steps;
    where it is closed instead, what was written stays out of sight until the next start takes it away.
    """
    chats = yield from _read(path, notes)
    incoming = IncomingChats(store)
    try:
        yield from _write(incoming, chats, path)
        incoming.show()
    except GeneratorExit:
        raise
    except BaseException:
        yield from _drop(incoming, path)
        raise
    return incoming.ids


def _read(path: Path, notes: list[str]) -> Generator[str, None, list[WholeChat]]:
    steps = read_chats(path, notes)
    try:
        while True:
            yield tr("Reading {file}: {share}", file=path.name, share=percent(next(steps)))
    except StopIteration as end:
        return end.value


def _write(incoming: IncomingChats, chats: list[WholeChat], path: Path) -> Generator[str, None, None]:
    total = sum(characters(messages) for _chat, messages in chats)
    written = 0
    for chat, messages in chats:
        for count in incoming.write(chat, messages):
            written += count
            yield tr("Importing {file}: {share}", file=path.name, share=percent(written / max(total, 1)))


def _drop(incoming: IncomingChats, path: Path) -> Generator[str, None, None]:
    try:
        for _step in incoming.drop():
            yield tr("Taking back what was imported of {file}", file=path.name)
    except StoreError as error:
        log.warning("half an import stays hidden until the next start: %s", error)
