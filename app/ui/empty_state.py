"""What a new chat shows: what this is, and three prompts to start with."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui import theme

EXAMPLES = (
    "Write a Python function that checks whether a string is a palindrome.",
    "Explain how rainbows form.",
    "List five healthy breakfast ideas.",
)


class EmptyState(QWidget):
    """``chosen(str)`` fires with the prompt that was picked."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._title, self._hint = QLabel("Ask the model on this computer"), QLabel()
        self._hint.setText("Drafted tokens are checked by the model itself, so the answer is its own, only sooner.")
        self._hint.setWordWrap(True)
        self.buttons = [QPushButton(text) for text in EXAMPLES]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.XL, theme.XL, theme.XL, theme.XL)
        layout.setSpacing(theme.M)
        layout.addStretch(1)
        for label in (self._title, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            layout.addWidget(label)
        layout.addSpacing(theme.S)
        for button, text in zip(self.buttons, EXAMPLES, strict=True):
            button.clicked.connect(lambda _checked=False, text=text: self.chosen.emit(text))
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(1)
        self.restyle()

    def restyle(self) -> None:
        """Follows the palette."""
        self._title.setFont(theme.scaled_font(150, QFont.Weight.DemiBold))
        theme.tint(self._hint, theme.current().quiet)
