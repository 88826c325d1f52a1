"""Shows where the keyboard is: a ring around the control that has the focus, while one moves with the keys."""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QCheckBox, QComboBox, QTextBrowser, QToolButton, QWidget

from app.mac import IS_MAC
from app.ui.mode_switch import ModeButton

# What the style itself leaves without a mark; a Mac's own marks the others well.
MARKED: tuple[type[QWidget], ...] = (QToolButton, QTextBrowser) if IS_MAC else (QAbstractButton, QComboBox, QTextBrowser)


class FocusRing(QObject):
    """For every window of the application, as long as ``owner`` lives."""

    def __init__(self, owner: QObject):
        super().__init__(owner)
        self._ring: _Ring | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def _on_focus(self, _before: QWidget | None, now: QWidget | None) -> None:
        ring, self._ring = self._ring, None
        if ring is not None and shiboken6.isValid(ring):
            ring.hide()
            ring.deleteLater()
        if now is not None and isinstance(now, MARKED) and not isinstance(now, ModeButton):
            by_keys = now.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
            self._ring = _Ring(now) if by_keys else None


class _Ring(QWidget):
    """Lies inside its control, so that it goes wherever that goes."""

    def __init__(self, control: QWidget):
        super().__init__(control)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        control.installEventFilter(self)
        self.setGeometry(control.rect())
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        control = self.parentWidget()
        if event.type() == QEvent.Type.Resize and control is not None:
            self.setGeometry(control.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().highlight().color(), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        inset = 0 if isinstance(self.parentWidget(), QCheckBox) else 1
        painter.drawRoundedRect(self.rect().adjusted(inset, inset, -1 - inset, -1 - inset), 4, 4)
