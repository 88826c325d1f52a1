"""The bar over a chat that asks what to find in it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from app.core.words import tr
from app.ui import theme

SETTLE_MS = 120


class FindBar(QWidget):
    """Signals: ``wanted(str)`` once typing settles; ``step_asked(1 or -1)``; ``closed()``."""

    wanted = Signal(str)
    step_asked = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.field, self.count = QLineEdit(), QLabel()
        self.field.setPlaceholderText(tr("Find in this chat"))
        self.field.setAccessibleName(tr("Find in this chat"))
        self.count.setFont(theme.figure_font())
        self.before = self._button("up", tr("Previous hit"), lambda: self.step_asked.emit(-1))
        self.after = self._button("down", tr("Next hit"), lambda: self.step_asked.emit(1))
        self.close_button = self._button("close", tr("Close the search"), self.closed.emit)
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(lambda: self.wanted.emit(self.field.text()))
        self.field.textChanged.connect(self._settle.start)
        self.field.installEventFilter(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.S, theme.M, theme.S)
        layout.setSpacing(theme.S)
        layout.addWidget(self.field, 1)
        layout.addWidget(self.count)
        for button in (self.before, self.after, self.close_button):
            layout.addWidget(button)
        self.restyle()
        self.hide()

    def show_count(self, place: int, count: int) -> None:
        """Hit ``place`` (from 1) of ``count``; nothing while nothing is asked."""
        if not self.field.text():
            self.count.setText("")
        elif not count:
            self.count.setText(tr("Not found"))
        else:
            self.count.setText(tr("{place} of {count}", place=place, count=count))
        theme.tint(self.count, theme.current().quiet if count else theme.current().warning)
        for button in (self.before, self.after):
            button.setEnabled(count > 0)

    def show_counting(self) -> None:
        """The hits are not counted yet."""
        self.count.setText("…")
        for button in (self.before, self.after):
            button.setEnabled(False)

    def settle(self) -> None:
        """Asks now for what was typed, rather than in a moment."""
        if self._settle.isActive():
            self._settle.stop()
            self.wanted.emit(self.field.text())

    def stop(self) -> None:
        """Drops what was still to be asked."""
        self._settle.stop()

    def restyle(self) -> None:
        """Follows the palette."""
        for button, name in ((self.before, "up"), (self.after, "down"), (self.close_button, "close")):
            button.setIcon(theme.icon(name, theme.current().quiet))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape closes the bar while it has the focus, also when elsewhere it would stop an answer."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.settle()
            self.step_asked.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        else:
            super().keyPressEvent(event)

    def _button(self, icon: str, name: str, run) -> QToolButton:
        button = QToolButton(autoRaise=True)
        button.setIconSize(QSize(14, 14))
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.clicked.connect(run)
        return button
