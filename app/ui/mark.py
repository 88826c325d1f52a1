"""A frame around one message, so that what was searched for is seen at once."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui import theme


class Mark(QWidget):
    """Lies over ``target``, follows its place and lets every click through; gone with it."""

    def __init__(self, target: QWidget):
        super().__init__(target.parentWidget())
        self.target = target
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        target.installEventFilter(self)
        target.destroyed.connect(self.deleteLater)
        self._follow()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._follow()
        elif event.type() == QEvent.Type.Hide:
            self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self.palette().highlight().color())
        painter.setPen(colour)
        colour.setAlphaF(0.12)
        painter.setBrush(colour)
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), theme.S, theme.S)

    def _follow(self) -> None:
        self.setGeometry(self.target.geometry())
        self.raise_()
