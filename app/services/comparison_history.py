"""Keeps every comparison that came to a verdict, and finds earlier ones again."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, Signal

from app.core.compare import Comparison
from app.core.compare_record import ComparisonEntry, entry_of, from_record, to_record
from app.services.comparison_run import ComparisonRun
from app.store import ComparisonStore, StoreError
from app.worker import Failure

log = logging.getLogger(__name__)


class ComparisonHistory(QObject):
    """``changed()`` follows every comparison kept or deleted; ``failed(Failure)`` what the disk refused."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, store: ComparisonStore, run: ComparisonRun, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._run = store, run
        run.ended.connect(self._on_ended)

    def entries(self) -> list[ComparisonEntry]:
        """What was kept, the newest first."""
        return [entry_of(comparison_id, comparison) for comparison_id, comparison in self._all()]

    def comparison(self, comparison_id: int) -> Comparison | None:
        """One of them whole, None if it is gone."""
        return dict(self._all()).get(comparison_id)

    def delete(self, comparison_id: int) -> None:
        """Forgets one."""
        try:
            self._store.delete(comparison_id)
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
        self.changed.emit()

    def _all(self) -> list[tuple[int, Comparison]]:
        found = []
        try:
            records = self._store.all()
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return []
        for comparison_id, record in records:
            try:
                found.append((comparison_id, from_record(record)))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                log.warning("comparison %s cannot be read: %r", comparison_id, error)
        return found

    def _on_ended(self, _failure: Failure | None) -> None:
        comparison = self._run.comparison
        if comparison is None or comparison.verdict is None:
            return
        try:
            self._store.add(to_record(comparison))
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
        self.changed.emit()
