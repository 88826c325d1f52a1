"""What a new chat shows: what this is, and three prompts to start with."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.core.words import mark, tr
from app.ui import theme
from app.ui.pages import Page

EXAMPLES = (
    mark("Write a Python function that checks whether a string is a palindrome."),
    mark("Explain how rainbows form."),
    mark("List five healthy breakfast ideas."),
)


class EmptyState(Page):
    """``chosen(str)`` fires with the prompt that was picked, ``offer_taken()`` when the offered model is to be looked at."""

    chosen = Signal(str)
    offer_taken = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._title, self._hint = QLabel(tr("Ask the model on this computer")), QLabel()
        self._hint.setText(tr("Drafted tokens are checked by the model itself, so the answer is its own, only sooner."))
        self._hint.setWordWrap(True)
        self.buttons = [QPushButton(tr(text)) for text in EXAMPLES]
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(theme.XL, theme.XL, theme.XL, theme.XL)
        layout.setSpacing(theme.M)
        layout.addStretch(1)
        for label in (self._title, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            layout.addWidget(label)
        layout.addSpacing(theme.S)
        for button in self.buttons:
            button.clicked.connect(partial(self._choose, button))
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        self.offer = QPushButton(flat=True)
        self.offer.clicked.connect(self.offer_taken)
        layout.addSpacing(theme.S)
        layout.addWidget(self.offer, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(1)
        self.show_offer("")
        self.restyle()

    def _choose(self, button: QPushButton) -> None:
        self.chosen.emit(button.text())

    def show_offer(self, text: str) -> None:
        """A model to get, in words; none where ``text`` is empty."""
        self.offer.setText(text)
        self.offer.setVisible(bool(text))

    def restyle(self) -> None:
        """Follows the palette."""
        self._title.setFont(theme.scaled_font(150, QFont.Weight.DemiBold))
        theme.tint(self._hint, theme.current().quiet)
