"""Two ways of decoding beside each other on one prompt: texts live, then a replay on one clock, the rates and the verdict."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSplitter, QVBoxLayout, QWidget

from app.core.compare import SIDES, Comparison, Side
from app.core.figures import percent
from app.core.sanitize import clean_text
from app.core.words import tr
from app.ui import theme
from app.ui.compare_bar import CompareBar
from app.ui.compare_pane import ArmPane
from app.ui.labels import ElidedLabel
from app.ui.pages import Page

FRAME_MS = 33


class CompareView(Page):
    """Signals ``replay_asked()``, ``copy_asked()`` and ``close_asked()`` come from its buttons."""

    replay_asked = Signal()
    copy_asked = Signal()
    close_asked = Signal()

    def __init__(self, text_size: int = 100, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(tr("Side by side"))
        self._comparison: Comparison | None = None
        self._running: Side | None = None
        self._now, self._replay_began = time.monotonic, 0.0
        self.panes: dict[Side, ArmPane] = {side: ArmPane(text_size) for side in SIDES}
        self.bar = CompareBar()
        self.prompt = ElidedLabel()
        self.prompt.setAccessibleName(tr("Prompt"))
        self.options = ElidedLabel()
        self.options.setAccessibleName(tr("Options of both"))
        self.options.setFont(theme.figure_font(90))
        self.verdict = QLabel(wordWrap=True)
        self.verdict.setFont(theme.figure_font(110, QFont.Weight.DemiBold))
        self.verdict.setAccessibleName(tr("Verdict"))
        self.verdict.setTextFormat(Qt.TextFormat.PlainText)
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.details = QLabel(wordWrap=True)
        self.details.setFont(theme.figure_font(90))
        self.replay_button = self._button(tr("Replay"), "replay", self.replay_asked)
        self.copy_button = self._button(tr("Copy report"), "copy", self.copy_asked)
        self.close_button = self._button(tr("Back to the chat"), "", self.close_asked)
        self._clock = QTimer(self, interval=FRAME_MS)
        self._clock.setTimerType(Qt.TimerType.PreciseTimer)
        self._clock.timeout.connect(self._on_frame)
        self._lay_out()

    def _lay_out(self) -> None:
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False)
        self.splitter.setHandleWidth(1)
        for side in SIDES:
            self.splitter.addWidget(self.panes[side])
            self.panes[side].setMinimumWidth(160)
        self.splitter.setSizes([1, 1])
        words = QVBoxLayout()
        words.setSpacing(theme.XS)
        words.addWidget(self.verdict)
        words.addWidget(self.details)
        foot = QHBoxLayout()
        foot.setContentsMargins(theme.L, theme.S, theme.L, theme.S)
        foot.setSpacing(theme.S)
        foot.addLayout(words, 1)
        for button in (self.replay_button, self.copy_button):
            foot.addWidget(button, 0, Qt.AlignmentFlag.AlignBottom)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.S)
        top = QHBoxLayout()
        top.setContentsMargins(theme.L, theme.S, theme.L, 0)
        top.addWidget(self.prompt, 1)
        top.addWidget(self.close_button)
        options = QHBoxLayout()
        options.setContentsMargins(theme.L, 0, theme.L, 0)
        options.addWidget(self.options)
        layout.addLayout(top)
        layout.addLayout(options)
        layout.addWidget(self.bar)
        layout.addWidget(self.splitter, 1)
        layout.addLayout(foot)

    # A run

    def start(self, comparison: Comparison) -> None:
        """Shows a new run."""
        self._clock.stop()
        self._comparison, self._running = comparison, None
        self.prompt.setText(" ".join(clean_text(comparison.prompt[:400]).split()))
        self.options.setText(tr("Both: {options}", options=comparison.options) if comparison.options else "")
        self.options.setVisible(bool(comparison.options))
        for side, pane in self.panes.items():
            pane.show_name(comparison.side(side).arm.name)
            pane.restart()
        self._show_figures()

    def start_arm(self, side: Side) -> None:
        """The arm on ``side`` runs now."""
        self._running = side
        self._show_figures()

    def grow(self, side: Side) -> None:
        """More of the arm on ``side`` has been recorded."""
        if self._comparison is not None:
            arm = self._comparison.side(side)
            self.panes[side].show_text(arm.text, complete=arm.finished is not None)
            self._show_figures()

    def show_whole(self, comparison: Comparison) -> None:
        """Shows an earlier comparison as it ended."""
        self.start(comparison)
        for side, pane in self.panes.items():
            pane.show_text(comparison.side(side).text, complete=True)
        self.end()

    def end(self) -> None:
        """The run is over: the verdict stands."""
        self._running = None
        self._show_figures()

    @property
    def complete(self) -> bool:
        """Whether there is a run to replay or report."""
        return self._comparison is not None and self._running is None

    # Replay

    def replay(self) -> None:
        """Plays both recordings from the start on one clock."""
        if not self.complete:
            return
        for pane in self.panes.values():
            pane.restart()
        self._replay_began = self._now()
        self._clock.start()
        self._on_frame()

    @property
    def replaying(self) -> bool:
        """Whether a replay runs."""
        return self._clock.isActive()

    def stop_replay(self) -> None:
        """Ends a replay and shows both texts whole."""
        if self._clock.isActive() and self._comparison is not None:
            self._clock.stop()
            for side, pane in self.panes.items():
                pane.show_text(self._comparison.side(side).text, complete=True)
            self._show_figures()

    def _on_frame(self) -> None:
        assert self._comparison is not None
        now = self._now() - self._replay_began
        if now >= self._comparison.duration_s:
            self.stop_replay()
            return
        for side, pane in self.panes.items():
            arm = self._comparison.side(side)
            pane.show_text(arm.text_at(now), complete=now >= arm.duration_s)
            pane.show_time(min(now, arm.duration_s))

    # Figures

    def _show_figures(self) -> None:
        comparison = self._comparison
        over = comparison is not None and self._running is None
        for side, pane in self.panes.items():
            arm = comparison.side(side) if comparison is not None else None
            waits = arm is not None and self._running not in (None, side) and not arm.text
            pane.show_rate(arm.tok_s if arm else None, tr("running") if self._running == side else tr("waits") if waits else "")
            pane.show_time(arm.duration_s if arm is not None and arm.text else None)
            pane.show_gain(over and comparison is not None and comparison.gains == side)
        self.verdict.setText(self._verdict())
        self.details.setText(self._details() if over else "")
        for button in (self.replay_button, self.copy_button):
            button.setEnabled(over)
        identical = over and comparison is not None and comparison.verdict is not None and comparison.verdict.identical
        gains = over and comparison is not None and comparison.gains is not None
        colours = theme.current()
        theme.tint(self.verdict, colours.accent if gains else colours.warning if over and not identical else colours.text)

    def _verdict(self) -> str:
        comparison = self._comparison
        if comparison is None:
            return ""
        if self._running is None:
            return comparison.verdict_line()
        names = {side: comparison.side(side).arm.name for side in SIDES}
        if self._running == "left":
            return tr("{first} runs first, {second} follows", first=names["left"], second=names["right"])
        return tr("{name} runs", name=names["right"])

    def _details(self) -> str:
        """Tokens per cycle and acceptance of the arms that guess ahead."""
        comparison, lines = self._comparison, []
        for arm in comparison.arms if comparison is not None else ():
            statistics = arm.statistics
            if statistics is not None and statistics.acceptance_rate is not None:
                values = {"name": arm.arm.name, "tokens": statistics.tokens_per_cycle, "share": percent(statistics.acceptance_rate)}
                lines.append(tr("{name}: {tokens:.1f} tokens per cycle · {share} accepted", **values))
        return "\n".join(lines)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        for pane in self.panes.values():
            pane.restyle(text_size)
        self.replay_button.setIcon(theme.icon("replay"))
        self.copy_button.setIcon(theme.icon("copy"))
        theme.tint(self.details, theme.current().quiet)
        theme.tint(self.options, theme.current().quiet)
        self._show_figures()

    def _button(self, text: str, icon: str, signal) -> QPushButton:
        button = QPushButton(text)
        if icon:
            button.setIcon(theme.icon(icon))
        button.clicked.connect(signal)
        return button
