"""Where a sent message is changed: in its own place, with Cancel and Send."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.core.words import tr
from app.ui import theme
from app.ui.prompt_edit import PromptEdit


class MessageEditor(QWidget):
    """Signals: ``submitted(text)`` by Return or Send; ``cancelled()`` by Escape or Cancel."""

    submitted = Signal(str)
    cancelled = Signal()

    def __init__(self, text: str, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.edit = PromptEdit()
        self.edit.setAccessibleName(tr("Edit message"))
        self.edit.setFont(theme.scaled_font(text_size))
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        self.edit.submitted.connect(self._submit)
        self.send, cancel = QPushButton(tr("Send")), QPushButton(tr("Cancel"))
        self.send.clicked.connect(self._submit)
        cancel.clicked.connect(self.cancelled)
        self.edit.textChanged.connect(lambda: self.send.setEnabled(bool(self.text.strip())))
        note = QLabel(tr("The version before stays."))
        theme.tint(note, theme.current().quiet)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.S)
        buttons.addWidget(note)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.send)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.M, theme.S)
        layout.setSpacing(theme.S)
        layout.addWidget(self.edit)
        layout.addLayout(buttons)
        self.setFocusProxy(self.edit)

    @property
    def text(self) -> str:
        """What is written now."""
        return self.edit.toPlainText()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme.paint_card(self)

    def _submit(self) -> None:
        if self.text.strip():
            self.submitted.emit(self.text)
