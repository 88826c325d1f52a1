"""The engine lent to other programs: the desk to which their requests come, and what the worker posts of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.worker import Delivery, Ended, EngineWorker, Timed
from engine import Event, GenerationRequest
from engine.server.errors import ApiError

if TYPE_CHECKING:
    from engine.server.desk import Desk


class Lending(QObject):
    """Signals, for one answer after the other: ``began(GenerationRequest)``; ``events(list[Timed])``; ``ended(failed)``.

    ``see`` and ``call`` are for a desk, whose threads may call them.
    """

    began = Signal(object)
    events = Signal(list)
    ended = Signal(bool)
    _tend = Signal()

    def __init__(self, worker: EngineWorker, parent: QObject | None = None):
        super().__init__(parent)
        self.active = False  # whether such an answer is being written
        self.see, self.call = worker.see, worker.called.emit
        self._worker = worker
        self._desk: Desk | None = None
        self._batch: list[Timed] = []
        self._tend.connect(worker.tend)

    def serve(self, desk: Desk | None) -> None:
        """Answers also what comes to ``desk`` from now on, in turn with what the window asks; None: no more."""
        self._desk = desk
        self._worker.serve(desk)
        self._tend.emit()

    def leave(self, why: Callable[[], ApiError]) -> None:
        """Refuses the open answer and all others, until the worker has an engine again."""
        if self._desk is not None:
            self._desk.leave(why)

    def take(self, delivery: Delivery) -> None:
        """One thing that happened to such an answer. ``flush`` announces what was only kept."""
        payload = delivery.payload
        if isinstance(payload, GenerationRequest):
            self.active = True
            self.began.emit(payload)
        elif isinstance(payload, Ended):
            self.flush()
            self.active = False
            self.ended.emit(payload.cancelled)
        elif isinstance(payload, Event):
            self._batch.append(Timed(payload, delivery.at))

    def flush(self) -> None:
        """Announces what happened since."""
        batch, self._batch = self._batch, []
        if batch:
            self.events.emit(batch)
