"""A background thread that writes prepared segments gently, with a bounded backlog and a bounded end."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from engine.prefix.disk_format import Prepared

log = logging.getLogger(__name__)

REST = 9.0  # seconds of rest for every second of writing: decoding shares the cores and the memory's bandwidth
LONGEST_REST = 0.05
JOIN_S = 2.0  # for the chunk or the fsync that is under way when the writer must stop


class Abandoned(Exception):
    """The write under way is no longer wanted."""


class Writer:
    """Calls ``write`` with each segment offered, in order, on one thread that begins with the first."""

    def __init__(self, write: Callable[[Prepared], None], backlog_bytes: int):
        self._write, self._backlog_bytes = write, backlog_bytes
        self._queue: deque[Prepared] = deque()
        self._keys: set[str] = set()  # waiting or being written
        self._changed = threading.Condition()
        self._hurry, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._resumed = 0.0
        self.backlog = 0  # bytes waiting or being written

    def offer(self, prepared: Prepared) -> bool:
        """Takes a segment to be written later. False: the backlog is full, or the writer closed."""
        with self._changed:
            if self._stop.is_set() or self.backlog + prepared.nbytes > self._backlog_bytes:
                return False
            self._queue.append(prepared)
            self._keys.add(prepared.record.key)
            self.backlog += prepared.nbytes
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="prefix-writer", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def holds(self, key: str) -> bool:
        """The segment waits or is being written."""
        with self._changed:
            return key in self._keys

    def pause(self) -> None:
        """Between two chunks: lets the rest of the program have the machine. Raises ``Abandoned`` when it is time to stop."""
        if self._stop.is_set():
            raise Abandoned
        self._hurry.wait(min(REST * (time.perf_counter() - self._resumed), LONGEST_REST))
        self._resumed = time.perf_counter()

    def drop(self) -> int:
        """Forgets what waits; how many. What is being written goes on."""
        with self._changed:
            dropped = len(self._queue)
            for prepared in self._queue:
                self._done(prepared)
            self._queue.clear()
            return dropped

    def flush(self, timeout: float) -> bool:
        """Waits, without resting, until all is written; False when ``timeout`` seconds did not suffice."""
        self._hurry.set()
        try:
            with self._changed:
                return self._changed.wait_for(lambda: not self._keys, timeout)
        finally:
            if not self._stop.is_set():
                self._hurry.clear()

    def close(self, timeout: float) -> None:
        """Writes what waits for up to ``timeout`` seconds, gives up the rest and ends the thread."""
        if not self.flush(timeout) and (dropped := self.drop()):
            log.warning("%d stored prefixes were given up: they could not be written within %g s", dropped, timeout)
        self._stop.set()
        self._hurry.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _done(self, prepared: Prepared) -> None:
        self._keys.discard(prepared.record.key)
        self.backlog -= prepared.nbytes
        self._changed.notify_all()

    def _run(self) -> None:
        _lower_priority()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stop.is_set())
                if self._stop.is_set():
                    return
                prepared = self._queue.popleft()
            self._resumed = time.perf_counter()
            try:
                self._write(prepared)
            except Abandoned:
                pass
            except Exception:
                log.exception("a prefix could not be stored")  # ours to mend, but no reason to stop the others
            finally:
                with self._changed:
                    self._done(prepared)
            del prepared  # its arrays must not live on until the next one comes


def _lower_priority() -> None:
    """Puts this thread behind all others, where the system can do that for one thread."""
    with suppress(OSError):
        if sys.platform == "darwin":
            os.setpriority(3, 0, 0x1000)  # PRIO_DARWIN_THREAD, PRIO_DARWIN_BG: processor and disk
        elif sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
