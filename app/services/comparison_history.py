"""Keeps every comparison that came to a verdict, and finds earlier ones again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.core.compare import Comparison
from app.core.compare_record import ComparisonEntry, entry_of, from_record, to_record
from app.services.comparison_run import ComparisonRun
from app.store import ComparisonStore, StoreError
from app.worker import Failure

T = TypeVar("T")
log = logging.getLogger(__name__)


class ComparisonHistory(QObject):
    """``changed()`` follows every comparison kept or deleted; ``failed(Failure)`` what the disk refused."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, store: ComparisonStore, run: ComparisonRun, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._run = store, run
        run.ended.connect(self._on_ended)

    def entries(self) -> Iterator[ComparisonEntry]:
        """What was kept, the newest first; each is read when it is asked for, since all together take long."""
        for comparison_id in self._tried(self._store.ids) or ():
            comparison = self.comparison(comparison_id)
            if comparison is not None:
                yield entry_of(comparison_id, comparison)

    def comparison(self, comparison_id: int) -> Comparison | None:
        """One of them whole, None if it is gone or cannot be read."""
        record = self._tried(lambda: self._store.record(comparison_id))
        if record is None:
            return None
        try:
            return from_record(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("comparison %s cannot be read: %r", comparison_id, error)
            return None

    def delete(self, comparison_id: int) -> None:
        """Forgets one."""
        self._tried(lambda: self._store.delete(comparison_id))
        self.changed.emit()

    def _tried(self, work: Callable[[], T]) -> T | None:
        """What ``work`` returns; None where the disk refuses it, and ``failed`` says so."""
        try:
            return work()
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return None

    def _on_ended(self, _failure: Failure | None) -> None:
        comparison = self._run.comparison
        if comparison is None or comparison.verdict is None:
            return
        self._tried(lambda: self._store.add(to_record(comparison)))
        self.changed.emit()
