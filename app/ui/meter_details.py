"""The meter's details: why speculation is on or parked, this machine's costs, acceptance by slot, and the cycles over time."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.core.figures import percent
from app.core.meter import MeterSnapshot
from app.core.meter_text import cost_words, cycle_words, details_text, expected_words, in_use, slot_words, state_words
from app.core.words import number, tr
from app.services.engine_client import EngineClient
from app.services.meter_feed import MeterFeed
from app.ui import theme
from app.ui.charts import Bar, BarChart, Chart, CurveChart, Timeline
from app.ui.dialog_buttons import Role, dialog_buttons


class MeterDetails(QDialog):
    """Beside the window, and as live as the meter; every number follows from the engine's events and ``PairInfo.costs``."""

    def __init__(self, feed: MeterFeed, client: EngineClient, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("Meter details"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._feed, self._client = feed, client
        self.state, self.cycles = QLabel(wordWrap=True), QLabel(wordWrap=True)
        self.state.setFont(theme.scaled_font(110, QFont.Weight.DemiBold))
        for label in (self.state, self.cycles):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
        self.costs = CurveChart(tr("What a pass takes by its slots"))
        self.expected = BarChart(tr("Expected tokens per second by block length"))
        self.slots = BarChart(tr("Accepted by slot"))
        self.timeline = Timeline(tr("Cycles over time"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.XL)
        grid.setVerticalSpacing(theme.S)
        for index, chart in enumerate((self.costs, self.expected, self.slots, self.timeline)):
            self._place(grid, chart, index // 2, index % 2)
        self.copy_button = QPushButton(tr("Copy as text"))
        self.copy_button.clicked.connect(self._copy)
        buttons = dialog_buttons(self, tr("Close"), (self.copy_button, Role.ActionRole))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        layout.setSpacing(theme.M)
        layout.addWidget(self.state)
        layout.addWidget(self.cycles)
        layout.addLayout(grid, 1)
        layout.addWidget(buttons)
        feed.changed.connect(self._show)
        client.loaded.connect(self._on_loaded)
        self._on_loaded()
        self.resize(760, 560)

    def _place(self, grid: QGridLayout, chart: Chart, row: int, column: int) -> None:
        title = QLabel(chart.accessibleName())
        title.setFont(theme.scaled_font(100, QFont.Weight.DemiBold))
        grid.addWidget(title, 2 * row, column)
        grid.addWidget(chart, 2 * row + 1, column)
        grid.setColumnStretch(column, 1)

    def _on_loaded(self, _info: object = None) -> None:
        info = self._client.info
        costs = info.costs if info else None
        self.costs.show_curves(*((costs.widths, costs.verify_s, costs.draft_s) if costs else ((), (), ())))
        self.costs.describe(cost_words(costs))
        self._show(self._feed.snapshot())

    def _show(self, snapshot: MeterSnapshot) -> None:
        log, info = self._feed.log, self._client.info
        self.state.setText(state_words(log, snapshot))
        options = tr("Options: {options}", options=snapshot.options) if snapshot.options else ""
        self.cycles.setText("\n".join(filter(None, (cycle_words(log) if log.cycles else "", options))))
        expected = log.expected(info.costs if info else None, info.block_length if info else 0)
        now = in_use(log)
        bars = [Bar(str(each.length), each.tok_s, number(each.tok_s, ",.0f"), each.length == now) for each in expected]
        self.expected.show_bars(bars, accent=now != 1)
        self.expected.describe(expected_words(log, info))
        slots = [Bar(str(figure.slot), figure.share, percent(figure.share), marked=True) for figure in log.slots()]
        self.slots.show_bars(slots, highest=1.0)
        self.slots.describe(slot_words(log))
        self.timeline.show_cycles(log.cycles)
        self.timeline.describe(cycle_words(log) if log.cycles else "")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(details_text(self._feed.log, self._feed.snapshot(), self._client.info))
