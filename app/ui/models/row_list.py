"""The list of models: two lines a row, a bar while it is fetched, headings between groups, every row readable by VoiceOver."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFont, QFontMetrics, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.core.engine_words import engine_words
from app.core.model_rows import ModelRow
from app.ui import theme
from app.ui.labels import tip

ROW = Qt.ItemDataRole.UserRole
BAR = 3  # how high a progress bar is, in pixels
Index = QModelIndex | QPersistentModelIndex


class RowModel(QAbstractListModel):
    """Rows and headings: an entry is a ``ModelRow`` or the text of a heading."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.entries: list[ModelRow | str] = []

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.entries):
            return None
        entry = self.entries[index.row()]
        if isinstance(entry, str):
            return entry if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) else None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.name
            case Qt.ItemDataRole.AccessibleTextRole:
                return entry.spoken
            case Qt.ItemDataRole.ToolTipRole:
                return tip(entry.spoken)
            case Qt.ItemDataRole.UserRole:
                return entry
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        heading = index.isValid() and isinstance(self.entries[index.row()], str)
        return Qt.ItemFlag.NoItemFlags if heading else super().flags(index)

    def fill(self, entries: list[ModelRow | str]) -> bool:
        """Shows ``entries``. Only what changed is redrawn; True where rows came or went, which loses the selection."""
        if [_key(entry) for entry in entries] != [_key(entry) for entry in self.entries]:
            self.beginResetModel()
            self.entries = entries
            self.endResetModel()
            return True
        before, self.entries = self.entries, entries
        for place, (old, new) in enumerate(zip(before, entries, strict=True)):
            if old != new:
                self.dataChanged.emit(self.index(place), self.index(place))
        return False

    def find(self, row_id: str) -> QModelIndex:
        """Where the row with ``row_id`` is; an invalid index where it is not."""
        for place, entry in enumerate(self.entries):
            if isinstance(entry, ModelRow) and entry.id == row_id:
                return self.index(place)
        return QModelIndex()


class RowDelegate(QStyledItemDelegate):
    """Paints name and state, facts and fit, and the bar."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        line = option.fontMetrics.height()
        heading = index.data(ROW) is None
        return QSize(0, line + theme.L if heading else 2 * line + theme.M + theme.S + BAR)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ModelRow | None = index.data(ROW)
        colours = theme.current()
        if row is None:
            painter.save()
            painter.setFont(theme.scaled_font(85, QFont.Weight.DemiBold))
            painter.setPen(colours.quiet)
            place = option.rect.adjusted(theme.M, theme.S, -theme.M, -theme.XS)
            painter.drawText(place, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, index.data())
            painter.restore()
            return
        self.initStyleOption(option, index)
        option.text = ""
        style = option.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.Text
        text = option.palette.color(role)
        quiet = text if chosen else colours.quiet
        warning = text if chosen else colours.warning
        painter.save()
        self._paint_lines(painter, option.rect, row, (text, quiet, warning))
        painter.restore()

    def _paint_lines(self, painter: QPainter, rect: QRect, row: ModelRow, pens: tuple) -> None:
        text, quiet, warning = pens
        inside = rect.adjusted(theme.M, theme.XS, -theme.M, -theme.XS)
        figures = theme.figure_font()
        line = QFontMetrics(figures).height()
        first = QRect(inside.left(), inside.top(), inside.width(), line)
        second = first.translated(0, line + theme.XS)
        fetched = row.fraction is not None
        right = row.state if not fetched else ""
        used = _draw_right(painter, first, right, figures, warning if row.trouble else quiet)
        painter.setPen(text)
        painter.setFont(theme.scaled_font(100, QFont.Weight.Medium))
        _draw_elided(painter, first.adjusted(0, 0, -used, 0), row.name)
        painter.setFont(figures)
        if fetched:
            used = _draw_right(painter, second, row.speed, figures, quiet)
            painter.setPen(warning if row.trouble else quiet)
            _draw_elided(painter, second.adjusted(0, 0, -used, 0), row.state)
            self._paint_bar(painter, QRect(inside.left(), second.bottom() + theme.XS, inside.width(), BAR), row, quiet)
            return
        refused = row.fit is not None and row.fit.verdict == "no"
        fit = engine_words(row.fit.words) if row.fit is not None and row.group != "ready" else ""
        used = _draw_right(painter, second, fit, figures, warning if refused else quiet)
        painter.setPen(quiet)
        _draw_elided(painter, second.adjusted(0, 0, -used, 0), " · ".join(row.facts))

    def _paint_bar(self, painter: QPainter, rect: QRect, row: ModelRow, colour) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().line)
        painter.drawRoundedRect(rect, BAR / 2, BAR / 2)
        painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(rect.left(), rect.top(), rect.width() * (row.fraction or 0.0), BAR), BAR / 2, BAR / 2)


class RowList(QListView):
    """``chosen(ModelRow | None)`` follows the selection and every change of the selected row; ``opened(ModelRow)`` Return on it.

    ``menu_asked(ModelRow, QPoint)`` has a place on the screen; ``delete_asked(ModelRow)`` comes for rows that can be deleted.
    """

    chosen = Signal(object)
    opened = Signal(object)
    menu_asked = Signal(object, QPoint)
    delete_asked = Signal(object)

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.rows = RowModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(RowDelegate(self))
        self.setAccessibleName(name)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self._filling, self._wanted = False, ""
        self.selectionModel().currentChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self.opened.emit(index.data(ROW)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Not ``activated``: some desktops send that on a single click, which must not begin a download.
        row = self.current()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and row is not None:
            self.opened.emit(row)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and row is not None and "delete" in row.actions:
            self.delete_asked.emit(row)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        row, mouse = self.current(), event.reason() is QContextMenuEvent.Reason.Mouse
        if row is not None and (not mouse or self.indexAt(event.pos()) == self.currentIndex()):
            place = event.globalPos() if mouse else self.viewport().mapToGlobal(self.visualRect(self.currentIndex()).bottomLeft())
            self.menu_asked.emit(row, place)

    def fill(self, entries: list[ModelRow | str]) -> None:
        """Shows ``entries``; what was selected stays selected, else the first row is."""
        self._filling = True
        moved = self.rows.fill(entries)
        if moved:
            index = self.rows.find(self._wanted)
            first = next((place for place, entry in enumerate(entries) if isinstance(entry, ModelRow)), -1)
            self.setCurrentIndex(index if index.isValid() else self.rows.index(first))
        self._filling = False
        self.chosen.emit(self.current())

    def select(self, row_id: str) -> None:
        """Selects a row and scrolls to it; one that is not listed yet is selected once it is."""
        self._wanted = row_id
        index = self.rows.find(row_id)
        if index.isValid():
            self.setCurrentIndex(index)

    def current(self) -> ModelRow | None:
        """The selected row."""
        return self.currentIndex().data(ROW)

    def _on_current(self, index: QModelIndex, _before: QModelIndex) -> None:
        row = index.data(ROW)
        if not self._filling:
            self._wanted = row.id if row is not None else ""
            self.chosen.emit(row)


def _key(entry: ModelRow | str) -> str:
    return f"heading {entry}" if isinstance(entry, str) else f"row {entry.id}"


def _draw_right(painter: QPainter, rect: QRect, text: str, font: QFont, pen) -> int:
    """Draws ``text`` at the right, in at most two thirds of the width, and returns the width it took with its gap."""
    if not text:
        return 0
    metrics = QFontMetrics(font)
    width = min(metrics.horizontalAdvance(text) + 1, 2 * rect.width() // 3)
    painter.setFont(font)
    painter.setPen(pen)
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
    painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shown)
    return width + theme.M


def _draw_elided(painter: QPainter, rect: QRect, text: str) -> None:
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
