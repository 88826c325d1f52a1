"""The local server's last requests as a table that follows them while it is in view."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from app.core.server_words import columns, row_of
from app.core.words import tr
from app.services.server import LocalServer
from app.ui.labels import tip

LOOK_MS = 400
ROWS_MEASURED = 12  # of all rows it would take long, at every change
NUMBERS = (3, 4, 5)  # the columns that hold some
Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole


class RequestModel(QAbstractTableModel):
    """The rows, newest first."""

    def __init__(self, parent: QWidget):
        super().__init__(parent)
        self._names = columns()
        self.rows: list[tuple[str, ...]] = []

    def show_rows(self, rows: list[tuple[str, ...]]) -> None:
        """Shows other rows."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._names)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole) -> Any:
        if role == Role.DisplayRole and orientation is Qt.Orientation.Horizontal:
            return self._names[section]
        return None

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        text = self.rows[index.row()][index.column()]
        if role == Role.DisplayRole:
            return text
        if role == Role.ToolTipRole:
            return tip(text)
        if role == Role.TextAlignmentRole and index.column() in NUMBERS:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


class RequestList(QTableView):
    """Looks for news only while it is in view."""

    def __init__(self, server: LocalServer, parent: QWidget | None = None):
        super().__init__(parent)
        self._server = server
        self._shown: tuple[object, int] = (None, -1)
        self.requests = RequestModel(self)
        self.setModel(self.requests)
        self.setAccessibleName(tr("Last requests"))
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(ROWS_MEASURED)
        self.setMinimumHeight(self.fontMetrics().height() * 10)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)

    def look(self) -> None:
        """Shows what has changed since the last look."""
        journal = self._server.journal
        state = (journal, journal.version if journal is not None else 0)
        if state != self._shown:
            self._shown = state
            self.requests.show_rows([row_of(entry) for entry in journal.entries()] if journal is not None else [])

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()
