"""Small charts drawn with QPainter: bars, two curves and a timeline, in the palette's colours and the system font."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.core.cycle_log import CycleMark
from app.core.meter_text import milliseconds
from app.core.words import tr
from app.ui import theme

HEIGHT_LINES = 8
MOST_CYCLES = 240


@dataclass(frozen=True, slots=True)
class Bar:
    """``text`` stands above the bar, ``name`` below; ``marked``: this one is in use."""

    name: str
    value: float
    text: str
    marked: bool = False


class Chart(QWidget):
    """The ground of all: ``name`` and what ``describe`` was given are read to those who cannot see it."""

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def describe(self, words: str) -> None:
        """The same in words."""
        self.setAccessibleDescription(words)
        self.setToolTip(words)

    def sizeHint(self) -> QSize:
        return QSize(260, self.fontMetrics().height() * HEIGHT_LINES)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.figure_font(85))
        self.draw(painter, QFontMetricsF(painter.font()))

    def draw(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        """Draws the whole chart; ``metrics`` are those of the painter's font."""
        raise NotImplementedError

    def say(self, painter: QPainter, text: str) -> None:
        """A quiet line in the middle, where there is nothing to draw."""
        painter.setPen(theme.current().quiet)
        painter.drawText(QRectF(self.rect()), int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap), text)


class BarChart(Chart):
    """Bars from nought; the marked one carries the accent where ``accent`` is set, the others are grey."""

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(name, parent)
        self._bars: Sequence[Bar] = ()
        self._highest: float | None = None
        self._accent = True

    def show_bars(self, bars: Sequence[Bar], highest: float | None = None, accent: bool = True) -> None:
        """``highest`` is the value of a bar as tall as the chart; None: the highest of ``bars``."""
        self._bars, self._highest, self._accent = bars, highest, accent
        self.update()

    def draw(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        colours, line = theme.current(), metrics.height()
        if not self._bars:
            self.say(painter, tr("Nothing was drafted yet."))
            return
        highest = self._highest or max(bar.value for bar in self._bars) or 1.0
        step = self.width() / len(self._bars)
        room = self.height() - 2 * line - theme.XS
        # Texts that would touch are left out from the second on; the marked one always has its own.
        every = max(1, -(-int(max(metrics.horizontalAdvance(f"{bar.text} ") for bar in self._bars)) // max(int(step), 1)))
        for index, bar in enumerate(self._bars):
            height = max(room * min(bar.value / highest, 1.0), 1.0)
            box = QRectF(index * step + step * 0.14, line + room - height, step * 0.72, height)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.accent if bar.marked and self._accent else colours.quiet if bar.marked else colours.line)
            painter.drawRoundedRect(box, 2, 2)
            painter.setPen(colours.text if bar.marked else colours.quiet)
            cell = QRectF((index + 0.5) * step - 60, 0, 120, line)
            if index % every == 0 or bar.marked:
                painter.drawText(cell.translated(0, box.top() - line), int(Qt.AlignmentFlag.AlignCenter), bar.text)
                painter.drawText(cell.translated(0, self.height() - line), int(Qt.AlignmentFlag.AlignCenter), bar.name)


class CurveChart(Chart):
    """Two curves over the same widths: what a verify and a draft pass take, in milliseconds."""

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(name, parent)
        self._widths: Sequence[int] = ()
        self._curves: list[tuple[str, Sequence[float]]] = []

    def show_curves(self, widths: Sequence[int], verify_s: Sequence[float], draft_s: Sequence[float]) -> None:
        """Seconds of each pass at each of ``widths``."""
        self._widths = widths
        self._curves = [(tr("verify"), verify_s), (tr("draft"), draft_s)] if widths else []
        self.update()

    def draw(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        if not self._curves:
            self.say(painter, tr("Nothing was measured: this model proposes nothing."))
            return
        colours, line = theme.current(), metrics.height()
        highest = max(max(values) for _name, values in self._curves)
        names = [f"{name} {milliseconds(values[-1])}" for name, values in self._curves]
        right = max(metrics.horizontalAdvance(name) for name in names) + theme.S
        plot = QRectF(theme.XS, line, self.width() - right - theme.XS, self.height() - 2 * line - theme.XS)
        last = max(len(self._widths) - 1, 1)
        for index, width in enumerate(self._widths):
            x = plot.left() + plot.width() * index / last
            painter.setPen(QPen(colours.line, 1))
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            painter.setPen(colours.quiet)
            cell = QRectF(x - 30, plot.bottom() + theme.XS, 60, line)
            painter.drawText(cell, int(Qt.AlignmentFlag.AlignCenter), str(width))
        for (_name, values), label, style in zip(self._curves, names, (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine), strict=True):
            points = [
                QPointF(plot.left() + plot.width() * index / last, plot.bottom() - plot.height() * value / highest)
                for index, value in enumerate(values)
            ]
            painter.setPen(QPen(colours.text, 1.6, style))
            painter.drawPolyline(QPolygonF(points))
            beside = QRectF(plot.right() + theme.XS, points[-1].y() - line / 2, right, line)
            painter.drawText(beside, int(Qt.AlignmentFlag.AlignLeft), label)


class Timeline(Chart):
    """The last cycles over time: as wide as they took, as high as the tokens they committed."""

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(name, parent)
        self._cycles: Sequence[CycleMark] = ()

    def show_cycles(self, cycles: Sequence[CycleMark]) -> None:
        """The newest ``MOST_CYCLES`` are drawn."""
        self._cycles = tuple(cycles[-MOST_CYCLES:])
        self.update()

    def draw(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        if not self._cycles:
            self.say(painter, tr("No cycle yet."))
            return
        colours, line = theme.current(), metrics.height()
        begin, end = self._cycles[0].began_s, self._cycles[-1].ended_s
        highest = max(cycle.committed for cycle in self._cycles) or 1
        plot = QRectF(0, line, self.width(), self.height() - 2 * line - theme.XS)
        painter.setPen(Qt.PenStyle.NoPen)
        for cycle in self._cycles:
            left = plot.width() * (cycle.began_s - begin) / ((end - begin) or 1)
            width = plot.width() * (cycle.ended_s - cycle.began_s) / ((end - begin) or 1)
            height = plot.height() * cycle.committed / highest
            gap = min(1.0, width / 4)
            painter.setBrush(self._colour(cycle, colours))
            painter.drawRect(QRectF(plot.left() + left + gap, plot.bottom() - height, max(width - 2 * gap, 0.6), height))
        painter.setPen(colours.quiet)
        top = QRectF(0, 0, self.width(), line)
        foot = QRectF(0, self.height() - line, self.width(), line)
        painter.drawText(top, int(Qt.AlignmentFlag.AlignLeft), tr("up to {count} tokens a cycle", count=highest))
        painter.drawText(foot, int(Qt.AlignmentFlag.AlignLeft), tr("{time:.1f} s", time=begin))
        painter.drawText(foot, int(Qt.AlignmentFlag.AlignRight), tr("{time:.1f} s", time=end))

    @staticmethod
    def _colour(cycle: CycleMark, colours: theme.Theme) -> QColor:
        return colours.accent if cycle.accepted else colours.quiet
