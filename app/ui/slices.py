"""Spreads laying out long texts over turns of the event loop, so that no turn takes long however long they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Signal
from shiboken6 import isValid

TURN = 16_000  # characters laid out at once in one turn
BAR = 50  # what a cell of a table costs more than its characters
SLICE_S = 0.01
NEXT_TURN = QEvent.Type(QEvent.registerEventType())


def cost(text: str) -> int:
    """What laying out Markdown costs, in characters of plain prose."""
    return len(text) + BAR * text.count("|")


class Slices(QObject):
    """``settled()``: everything that was put off is done."""

    settled = Signal()

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._left = TURN
        self._waiting: deque[tuple[QObject, Callable[[], None]]] = deque()
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._run_slice)

    @property
    def waiting(self) -> bool:
        """Whether anything was put off and not done yet."""
        return bool(self._waiting)

    def run(self, owner: QObject, size: int, work: Callable[[], None]) -> None:
        """Does ``work`` now, or in a later turn where this one has done its share; never once ``owner`` is deleted.

        ``size`` is what it costs (see ``cost``). A turn's first work is done at once, whatever its size.
        """
        if self._left <= 0:
            self._waiting.append((owner, work))
            self._timer.start()
            return
        if self._left == TURN:
            QCoreApplication.postEvent(self, QEvent(NEXT_TURN))
        self._left -= max(size, 1)
        work()

    def customEvent(self, event: QEvent) -> None:
        """Qt's hook: another turn of the event loop."""
        self._left = TURN

    def _run_slice(self) -> None:
        begun, self._left = perf_counter(), 0  # what the work itself asks for has to wait
        while self._waiting and perf_counter() - begun < SLICE_S:
            owner, work = self._waiting.popleft()
            if isValid(owner):
                work()
        self._left = TURN
        if not self._waiting:
            self._timer.stop()
            self.settled.emit()


_made: list[Slices] = []


def slices() -> Slices:
    """The one of this program: all windows share its thread."""
    if not _made or not isValid(_made[0]):
        _made[:] = [Slices(QCoreApplication.instance())]
    return _made[0]
