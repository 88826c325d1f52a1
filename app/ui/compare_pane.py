"""One column of the side-by-side view: the arm's name and rate above its text, its time below."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.core.figures import rate, seconds
from app.core.sanitize import clean_text
from app.core.words import tr
from app.ui import theme
from app.ui.answer_body import AnswerBody
from app.ui.labels import ElidedLabel


class ArmPane(QWidget):
    """Follows its text to the end until the user scrolls up."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._following = True
        self.title, self.rate, self.clock = ElidedLabel(), QLabel(), QLabel()
        for label in (self.rate, self.clock):
            label.setFont(theme.figure_font())
        self.title.setFont(theme.scaled_font(110, QFont.Weight.DemiBold))
        self.body = AnswerBody(text_size)
        page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, theme.S, theme.M, theme.S)
        inner.addWidget(self.body)
        inner.addStretch(1)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(page)
        bar = self._scroll.verticalScrollBar()
        bar.rangeChanged.connect(lambda _low, high: bar.setValue(high) if self._following else None)
        bar.valueChanged.connect(self._on_scrolled)
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.rate)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.S, theme.L, theme.S)
        layout.setSpacing(theme.S)
        layout.addLayout(top)
        layout.addWidget(self._scroll, 1)
        layout.addWidget(self.clock)
        self.show_name("")
        self.restyle(text_size)

    def show_name(self, name: str) -> None:
        """Which arm this is."""
        self.title.setText(name)
        self.title.setAccessibleName(name or tr("Arm"))
        self.rate.setAccessibleName(tr("{name}, speed", name=name))
        self.clock.setAccessibleName(tr("{name}, time", name=name))
        self._scroll.setAccessibleName(tr("{name}, answer", name=name))

    def show_rate(self, tok_s: float | None, doing: str) -> None:
        """Tokens per second, or what goes on while they are not known."""
        self.rate.setText(rate(tok_s) if tok_s is not None else doing)

    def show_time(self, duration_s: float | None) -> None:
        """Seconds since the request."""
        self.clock.setText(seconds(duration_s) if duration_s is not None else "")

    def show_text(self, text: str, complete: bool) -> None:
        """Shows ``text``; growth is appended, anything else starts over."""
        text = clean_text(text)
        shown = self.body.text
        if text.startswith(shown) and not (complete and len(text) == len(shown)):
            self.body.feed(text[len(shown) :])
        elif text != shown:
            self.body.set_text(text, finished=False)
        if complete:
            self.body.finish()

    def restart(self) -> None:
        """Empties the pane."""
        self._following = True
        self.body.set_text("", finished=False)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        theme.tint(self.clock, theme.current().quiet)
        self.body.restyle(text_size)

    def show_gain(self, pays: bool) -> None:
        """Carries the accent where speculation is known to have paid."""
        colour = theme.current().accent if pays else theme.current().quiet
        theme.tint(self.title, colour)
        theme.tint(self.rate, colour)

    def _on_scrolled(self, value: int) -> None:
        self._following = value >= self._scroll.verticalScrollBar().maximum() - 4
