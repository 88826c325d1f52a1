"""The rows of the chat list for Qt: the model, and the delegate that draws folders, pins and excerpts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.core.chat_rows import Row
from app.core.words import tr
from app.ui import theme
from app.ui.labels import tip

CHAT_MIME = "application/x-slipstream-chat-id"
IMPORTED = (".json", ".slipchat")
Index = QModelIndex | QPersistentModelIndex
Roles = Qt.ItemDataRole


class ChatModel(QAbstractListModel):
    """Signals: ``chat_renamed(id, title)``; ``folder_renamed(old, new)``; ``dropped(id, folder)`` for a chat that was dragged;
    ``files_dropped(list[Path])``.
    """

    chat_renamed = Signal(int, str)
    folder_renamed = Signal(str, str)
    dropped = Signal(int, str)
    files_dropped = Signal(list)

    def __init__(self, parent=None):
        super().__init__(parent)
        self.rows: list[Row] = []

    def show_rows(self, rows: list[Row]) -> None:
        """Replaces all rows."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def row(self, index: Index) -> Row | None:
        """The row of an index."""
        return self.rows[index.row()] if index.isValid() else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own default
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Roles.DisplayRole) -> Any:
        row = self.row(index)
        if row is None:
            return None
        if role in (Roles.DisplayRole, Roles.EditRole):
            return row.text
        if role == Roles.ToolTipRole and row.kind == "chat":
            return tip(row.text)
        if role == Roles.AccessibleTextRole:
            return self._spoken(row)
        if role == Roles.FontRole and row.kind == "heading":
            return theme.scaled_font(85, QFont.Weight.DemiBold)
        if role == Roles.ForegroundRole and row.kind == "heading":
            return theme.current().quiet  # the palette's own colour of disabled text is too faint to read
        if role == Roles.DecorationRole and row.kind == "folder":
            return theme.icon("right" if row.collapsed else "folder", theme.current().quiet)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        row = self.row(index)
        if row is None:
            return Qt.ItemFlag.ItemIsDropEnabled
        flags = Qt.ItemFlag.ItemIsDropEnabled
        if row.kind != "heading":
            flags |= Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
        if row.kind == "chat":
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        return flags

    def setData(self, index: Index, value: Any, role: int = Roles.EditRole) -> bool:
        row = self.row(index)
        if row is None or role != Roles.EditRole or value == row.text:
            return False
        if row.kind == "folder":
            self.folder_renamed.emit(row.folder, value)
        elif row.chat_id is not None:
            self.chat_renamed.emit(row.chat_id, value)
        return True

    # Dragging chats into folders, and files from elsewhere

    def mimeTypes(self) -> list[str]:
        return [CHAT_MIME, "text/uri-list"]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        row = self.row(indexes[0])
        data.setData(CHAT_MIME, str(row.chat_id if row else "").encode())
        return data

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction | Qt.DropAction.CopyAction

    def canDropMimeData(self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index) -> bool:
        return data.hasFormat(CHAT_MIME) or bool(_files(data))

    def dropMimeData(self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index) -> bool:
        if files := _files(data):
            self.files_dropped.emit(files)
            return True
        if not data.hasFormat(CHAT_MIME):
            return False
        on = self.row(parent) or (self.rows[row - 1] if 0 < row <= len(self.rows) else None)  # between two: the upper one's
        self.dropped.emit(int(bytes(data.data(CHAT_MIME).data())), on.folder if on is not None else "")
        return True

    def _spoken(self, row: Row) -> str:
        if row.kind == "folder":
            state = tr("closed folder") if row.collapsed else tr("open folder")
            return f"{row.text}, {state}"
        parts = [row.text, tr("pinned") if row.pinned else "", row.excerpt]
        return ", ".join(part for part in parts if part)


class ChatDelegate(QStyledItemDelegate):
    """A chat inside a folder is indented; a hit has its excerpt under the title."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row, height = self._row(index), option.fontMetrics.height() + theme.S
        return QSize(0, height + (option.fontMetrics.height() if row.excerpt else 0))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self._row(index)
        if row.kind != "chat":
            super().paint(painter, option, index)
            return
        style_option = QStyleOptionViewItem(option)
        self.initStyleOption(style_option, index)
        style_option.text = ""
        style = style_option.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, style_option, painter, style_option.widget)
        selected = bool(style_option.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        colour = style_option.palette.color(role)
        indent = theme.XL if row.folder else theme.XS
        room = QRect(style_option.rect).adjusted(indent, theme.XS, -theme.XS, -theme.XS)
        painter.save()
        painter.setPen(colour)
        line = QRect(room.left(), room.top(), room.width(), style_option.fontMetrics.height())
        painter.setFont(style_option.font)
        title = style_option.fontMetrics.elidedText(row.text, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)
        if row.excerpt:
            painter.setFont(theme.scaled_font(85))
            painter.setPen(colour if selected else theme.current().quiet)
            line.translate(0, style_option.fontMetrics.height())
            found = painter.fontMetrics().elidedText(row.excerpt, Qt.TextElideMode.ElideRight, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, found)
        painter.restore()

    def _row(self, index: Index) -> Row:
        model = index.model()
        assert isinstance(model, ChatModel)
        return model.rows[index.row()]


def _files(data: QMimeData) -> list[Path]:
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.suffix.lower() in IMPORTED]
