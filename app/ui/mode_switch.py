"""The switch between the ways to answer, under the message."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget

from app.core.words import tr
from app.services.settings import MODE_NAMES, ChatMode
from app.ui import theme


class ModeButton(QToolButton):
    """One segment of the switch: a soft fill marks the chosen one in every palette."""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = self.rect().adjusted(1, 1, -1, -1)
        if self.isChecked() or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.line if self.isChecked() else colours.card)
            painter.drawRoundedRect(box, 6, 6)
        if self.hasFocus():
            painter.setPen(self.palette().highlight().color())
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 6, 6)
        painter.setPen(colours.text if self.isChecked() else colours.quiet)
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 2 * theme.M, metrics.height() + theme.S + 2)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class ModeSwitch(QWidget):
    """DFlash, Plain or Side by side. ``chosen(mode)`` fires on the user's choice only."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(tr("Mode"))
        self._group, self._buttons = QButtonGroup(self), {}  # type: QButtonGroup, dict[str, QToolButton]
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for mode, name in MODE_NAMES.items():
            button = ModeButton()
            button.setText(tr(name))
            button.setCheckable(True)
            button.setAccessibleName(tr("Mode: {name}", name=tr(name)))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _checked=False, mode=mode: self.chosen.emit(mode))
            self._group.addButton(button)
            self._buttons[mode] = button
            layout.addWidget(button)

    def show_mode(self, mode: ChatMode) -> None:
        """Marks ``mode`` without announcing it."""
        self._buttons[mode].setChecked(True)

    def button(self, mode: ChatMode) -> QToolButton:
        """The button of one mode."""
        return self._buttons[mode]
