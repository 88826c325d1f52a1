"""How full the model's context will be with the message being written: a bar, the figures, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from app.core.figures import percent
from app.core.words import number, tr
from app.ui import theme
from app.ui.details_popup import DetailsPopup

NEARLY = 0.9
BAR_WIDTH, BAR_HEIGHT = 56, 4
Fill = Literal["unknown", "fits", "nearly full", "too long"]


@dataclass(frozen=True, slots=True)
class ContextUse:
    """``tokens`` of ``context`` are taken; ``parts`` are (name, tokens). ``drop_oldest``: a chat too long loses turns. ``share`` of
    a long prompt is read."""

    tokens: int
    context: int
    parts: Sequence[tuple[str, int]] = ()
    drop_oldest: bool = False
    share: float = 1.0

    @property
    def figures(self) -> str:
        """The tokens in words."""
        words = tr("{tokens} of {context} tokens", tokens=self.tokens, context=self.context)
        return words if self.share == 1.0 else tr("{words}, approximate", words=words)

    @property
    def read(self) -> str:
        """What of the prompt is read, where that is not all of it."""
        if self.share == 1.0:
            return ""
        return tr("Approximate: about {share} of a long prompt is read, as this chat's options say.", share=percent(self.share))

    @property
    def fill(self) -> Fill:
        """Which of the three states this is. An answer needs room for at least one token."""
        if self.tokens >= self.context:
            return "too long"
        return "nearly full" if self.tokens >= NEARLY * self.context else "fits"

    @property
    def advice(self) -> str:
        """What the state means and what to do, in words."""
        if self.fill == "fits":
            return tr("There is room for the answer.")
        if self.drop_oldest:
            return tr("The oldest turns will be left out so that the rest fits.")
        if self.fill == "nearly full":
            return tr("Little room is left for the answer: start a new chat soon, or let the chat drop its oldest turns.")
        return tr("Too long: shorten the message, remove a file, start a new chat, or let this chat drop its oldest turns.")


class ContextMeter(QToolButton):
    """Pressed, it shows the parts. ``fill`` is the state on show."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._use: ContextUse | None = None
        self.setAutoRaise(True)
        self.setFont(theme.figure_font(90))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.show_details)
        self.show_use(None)

    @property
    def fill(self) -> Fill:
        """The state on show."""
        return self._use.fill if self._use is not None else "unknown"

    def show_use(self, use: ContextUse | None) -> None:
        """Shows the figures; None hides the meter, before a model is loaded."""
        self._use = use
        self.setVisible(use is not None)
        if use is None:
            self.setText("")
            return
        self.setText(use.figures)
        advice = " ".join(filter(None, (use.advice, use.read)))
        self.setAccessibleName(tr("Context: {figures}. {advice}", figures=self.text(), advice=advice))
        lines = [f"{name}: {number(tokens)}" for name, tokens in use.parts]
        self.setToolTip("\n".join(filter(None, [*lines, use.advice, use.read])))
        self.updateGeometry()
        self.update()

    def show_details(self) -> None:
        """Opens the parts."""
        if self._use is None:
            return
        use = self._use
        rows = [(name, number(tokens)) for name, tokens in use.parts]
        rows += [(tr("Together"), number(use.tokens)), (tr("Context of the model"), number(use.context))]
        rows.append((tr("Left for the answer"), number(max(0, use.context - use.tokens))))
        DetailsPopup(tr("Context"), rows, " ".join(filter(None, (use.advice, use.read))), self).show_at(self, above=True)

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + BAR_WIDTH + 3 * theme.S, metrics.height() + theme.S)

    def minimumSizeHint(self) -> QSize:
        return QSize(BAR_WIDTH + 2 * theme.S, self.fontMetrics().height() + theme.S)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._use is None:
            return
        colours, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = {"fits": colours.quiet, "nearly full": colours.warning, "too long": colours.error}[self._use.fill]
        if self.hasFocus():
            painter.setPen(self.palette().highlight().color())
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 5, 5)
        bar = QRectF(theme.S, (self.height() - BAR_HEIGHT) / 2, BAR_WIDTH, BAR_HEIGHT)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.line)
        painter.drawRoundedRect(bar, 2, 2)
        share = min(1.0, self._use.tokens / self._use.context) if self._use.context else 0.0
        painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(bar.x(), bar.y(), bar.width() * share, bar.height()), 2, 2)
        painter.setPen(colour)
        if self.width() < self.sizeHint().width():
            return  # the bar alone where there is no room
        text = self.rect().adjusted(int(bar.right()) + theme.S, 0, 0, 0)
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, self.text())
