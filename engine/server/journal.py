"""The last requests for whoever looks after the server: when, what for, by which program, how much, how it ended; never a text."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from itertools import count

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import Statistics

KEPT = 100
# In a request's scope: the figures of its answer, the status of an error that came after the answer had begun, and what to call
# when it is its turn.
STATISTICS, LATE_STATUS, ITS_TURN = "slipstream.statistics", "slipstream.late_status", "slipstream.its_turn"
LONGEST_NAME = 200  # of a path or a program: clients choose them


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. ``at``: seconds since 1970. ``status``: the HTTP status, None until it is sent; ``open``: it goes on;
    ``answering``: its turn has come. ``client`` is what the program calls itself (User-Agent); ``statistics`` are of a finished
    answer."""

    number: int
    at: float
    method: str
    path: str
    client: str
    status: int | None = None
    open: bool = True
    answering: bool = False
    statistics: Statistics | None = None


class Journal:
    """The last ``KEPT`` requests, and those before them that are still open. For all threads."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._lock, self._numbers, self._version = threading.Lock(), count(1), 0

    @property
    def version(self) -> int:
        """Another number after every change."""
        return self._version

    def entries(self) -> list[Entry]:
        """Newest first."""
        with self._lock:
            return list(reversed(self._entries.values()))

    def begin(self, method: str, path: str, client: str) -> Entry:
        """A request came."""
        with self._lock:
            entry = Entry(next(self._numbers), time.time(), method, path[:LONGEST_NAME], client[:LONGEST_NAME])
            self._entries[entry.number] = entry
            self._version += 1
            self._tidy()
        return entry

    def put(self, entry: Entry) -> None:
        """Keeps what became of a request, if it is still among the last."""
        with self._lock:
            if entry.number in self._entries:
                self._entries[entry.number] = entry
                self._version += 1
                self._tidy()

    def _tidy(self) -> None:
        over = [number for number, entry in self._entries.items() if not entry.open][: max(0, len(self._entries) - KEPT)]
        for number in over:
            del self._entries[number]


class JournalKeeper:
    """Writes every request into the journal."""

    def __init__(self, app: ASGIApp, journal: Journal):
        self._app, self._journal = app, journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = self._journal.begin(scope["method"], scope["path"], Headers(scope=scope).get("user-agent", ""))

        def its_turn() -> None:
            nonlocal entry
            entry = replace(entry, answering=True)
            self._journal.put(entry)

        scope[ITS_TURN] = its_turn

        async def watched(message: Message) -> None:
            nonlocal entry
            if message["type"] == "http.response.start":
                entry = replace(entry, status=message["status"])
                self._journal.put(entry)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:  # becomes an answer further out
            entry = replace(entry, status=500)
            raise
        finally:
            status = scope.get(LATE_STATUS, entry.status)
            self._journal.put(replace(entry, status=status, open=False, statistics=scope.get(STATISTICS)))
