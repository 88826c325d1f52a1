"""Runs what would block the window on threads of its own, and brings the result back to the window's thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.core.words import tr
from engine import Cancelled, SlipstreamError

log = logging.getLogger(__name__)
Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Result:
    then: Callable[[Any], None]
    value: object


class Background(QObject):
    """``run`` may be called from the window's thread only; ``then`` and ``failed`` are called there too, never after ``close``."""

    _ended = Signal(object)

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Work, then: Callable[[Any], None], failed: Callable[[SlipstreamError], None], name: str) -> None:
        """Calls ``work`` on a thread called ``name``, then ``then`` with what it returned, or ``failed`` with why it did not."""
        if self._closed:
            return
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        # A daemon: a name look-up that hangs in the system must not keep the program from ending.
        thread = threading.Thread(target=self._work, args=(work, then, failed), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def busy(self) -> bool:
        """Whether any thread still works."""
        return any(thread.is_alive() for thread in self._threads)

    def close(self, limit_s: float) -> bool:
        """Waits up to ``limit_s`` seconds for all threads; no result is delivered any more. False: one still works."""
        self._closed = True
        end = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not self.busy

    def _work(self, work: Work, then: Callable[[Any], None], failed: Callable[[SlipstreamError], None]) -> None:
        try:
            result = _Result(then, work())
        except Cancelled:
            return
        except SlipstreamError as error:
            result = _Result(failed, error)
        except Exception as error:
            log.exception("background work failed")
            words = tr("Something went wrong ({kind}): try again; the details are in the log.", kind=type(error).__name__)
            result = _Result(failed, SlipstreamError(words))
        try:
            self._ended.emit(result)
        except RuntimeError:
            log.debug("the program ended before a background result")  # the Qt object is gone, and nobody waits

    @Slot(object)
    def _on_ended(self, result: _Result) -> None:
        if not self._closed:
            result.then(result.value)
