"""Small text widgets: a label that shortens what does not fit, a number whose width never changes, and texts for tool tips."""

from __future__ import annotations

from html import escape

from PySide6 import QtGui
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QSizePolicy, QToolButton, QWidget

from app.core.words import tr
from app.ui import theme


def tip(text: str) -> str:
    """``text`` for a tool tip. Qt would read as HTML what looks like it, and texts of chats, files and models may."""
    return f"<span style='white-space:pre-wrap'>{escape(text)}</span>" if QtGui.Qt.mightBeRichText(text) else text


def plain(text: str) -> str:
    """``text`` for a button or a menu, where Qt would take an ampersand for the mark of a key."""
    return text.replace("&", "&&")


def padded_row() -> QSize:
    """What a row of a list takes at least: its text with room above and below."""
    return QSize(0, QFontMetrics(QApplication.font()).height() + theme.S)


class ElidedLabel(QLabel):
    """One line of plain text that ends in an ellipsis where it does not fit; the whole is in its tool tip."""

    def __init__(self, text: str = "", parent: QWidget | None = None):
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setToolTip(tip(text))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), int(self.alignment()), shown)


def name_buttons(field: QLineEdit) -> None:
    """Gives the icons inside a search field names: Qt gives its clear button none."""
    for button in field.findChildren(QToolButton):
        button.setAccessibleName(tr("Clear the search"))


class Figure(QLabel):
    """A number whose width never changes: it is measured once, for the widest text it can hold."""

    def __init__(self, name: str, widest: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setFont(theme.figure_font(100, QFont.Weight.Normal))
        self.setFixedWidth(self.fontMetrics().horizontalAdvance(widest) + theme.XS)
