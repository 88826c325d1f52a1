"""Earlier comparisons: a list to open, to copy from and to delete from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QDateTime, QLocale, QModelIndex, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QHeaderView,
    QLabel,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.core.compare import Comparison
from app.core.compare_record import ComparisonEntry
from app.core.figures import rate
from app.core.words import tr
from app.services.comparison_history import ComparisonHistory
from app.ui import theme
from app.ui.dialog_buttons import Role, dialog_buttons
from app.ui.labels import padded_row, tip

ID = Qt.ItemDataRole.UserRole
TITLE_LENGTH = 200
SLICE_S = 0.02


class ComparisonList(QDialog):
    """``show`` is called with the comparison to open; ``copy`` with the report to put on the clipboard."""

    def __init__(
        self,
        history: ComparisonHistory,
        show: Callable[[Comparison], None],
        copy: Callable[[str], None],
        parent: QWidget | None = None,
    ):
        super().__init__(parent)
        self.setWindowTitle(tr("Earlier comparisons"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._history, self._show, self._copy = history, show, copy
        self.tree = QTreeWidget()
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setAllColumnsShowFocus(True)
        self.tree.setAccessibleName(tr("Earlier comparisons"))
        self.tree.setHeaderLabels([tr("Date"), tr("Prompt"), tr("Model"), tr("Arms"), tr("Verdict")])
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setStretchLastSection(False)
        self.tree.doubleClicked.connect(self._open)
        self.tree.currentItemChanged.connect(self._enable)
        self.none = QLabel(tr("No comparison yet: choose Side by Side under the message field and send a prompt."), wordWrap=True)
        self.open_button, self.copy_button = QPushButton(tr("Open")), QPushButton(tr("Copy report"))
        self.delete_button = QPushButton(tr("Delete"))
        acting = (self.copy_button, Role.ActionRole), (self.delete_button, Role.DestructiveRole)
        buttons = dialog_buttons(self, tr("Close"), (self.open_button, Role.AcceptRole), *acting)
        for button, run in ((self.open_button, self._open), (self.copy_button, self._report), (self.delete_button, self._delete)):
            button.clicked.connect(run)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.tree, self._delete)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.L, theme.L, theme.L)
        layout.setSpacing(theme.M)
        for widget in (self.none, self.tree, buttons):
            layout.addWidget(widget)
        history.changed.connect(self._fill)
        self._coming: Iterator[ComparisonEntry] = iter(())
        self._place = 0  # of the one that is to be chosen
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._add_some)
        self._fill()
        self.resize(900, 420)

    def _fill(self) -> None:
        self._place = max(self.tree.currentIndex().row(), 0)
        self.tree.clear()
        self._coming = self._history.entries()
        self._timer.start()
        self._add_some()

    def _add_some(self) -> None:
        """Lists what can be read in a moment: a hundred long answers would stop the window."""
        end = time.monotonic() + SLICE_S
        while (entry := next(self._coming, None)) is not None:
            self.tree.addTopLevelItem(_row(entry))
            if time.monotonic() >= end:
                break
        more = entry is not None
        count = self.tree.topLevelItemCount()
        if not more:
            self._timer.stop()
        if count and self.tree.currentItem() is None and (count > self._place or not more):
            self.tree.setCurrentIndex(self.tree.model().index(min(self._place, count - 1), 0))
        self.none.setVisible(not count and not more)
        self.tree.setVisible(bool(count))
        self._enable()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _chosen(self) -> int | None:
        item = self.tree.currentItem()
        return item.data(0, ID) if item is not None else None

    def _enable(self, *_items: object) -> None:
        for button in (self.open_button, self.copy_button, self.delete_button):
            button.setEnabled(self._chosen() is not None)

    def _open(self, _index: QModelIndex | bool = False) -> None:
        comparison = self._history.comparison(self._chosen() or 0)
        if comparison is not None:
            self._show(comparison)
            self.close()

    def _report(self) -> None:
        comparison = self._history.comparison(self._chosen() or 0)
        if comparison is not None:
            self._copy(comparison.report_markdown())

    def _delete(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            self._history.delete(chosen)


def _row(entry: ComparisonEntry) -> QTreeWidgetItem:
    moment = QLocale().toString(QDateTime.fromSecsSinceEpoch(round(entry.at)), QLocale.FormatType.ShortFormat)
    sides = ((entry.left, entry.left_tok_s), (entry.right, entry.right_tok_s))
    arms = " · ".join(f"{name} {rate(tok_s)}" if tok_s else name for name, tok_s in sides)
    prompt = " ".join(entry.prompt[:TITLE_LENGTH].split())
    item = QTreeWidgetItem([moment, prompt, entry.pair, arms, entry.verdict])
    item.setData(0, ID, entry.id)
    item.setSizeHint(0, padded_row())
    item.setToolTip(1, tip(prompt))
    return item
