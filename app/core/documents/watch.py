"""What goes along while a document is read: how far it is, whether it is still wanted, and how long it may take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from engine import Cancelled

LIMIT_S = 60.0  # of reading one document


class OutOfTime(Exception):
    """Reading took longer than it may."""


class Watch:
    """``report(done, total)`` is called on the reading thread, in pages; total is 0 where it is not known. ``cancel`` may be
    called on any thread.
    """

    def __init__(self, report: Callable[[int, int], None] = lambda _done, _total: None, limit_s: float = LIMIT_S):
        self.report = report
        self._ends = monotonic() + limit_s
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Ends the reading at its next step."""
        self._cancelled.set()

    def check(self) -> None:
        """Raises ``Cancelled`` or ``OutOfTime`` where reading is to end."""
        if self._cancelled.is_set():
            raise Cancelled("nobody waits for this document any more")
        if monotonic() > self._ends:
            raise OutOfTime
