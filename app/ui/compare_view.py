"""Plain decoding beside DFlash on one prompt: texts live, then a replay on one clock, the rates and the verdict."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.core.compare import ArmName, ArmRecorder, Comparison
from app.core.sanitize import clean_text
from app.ui import theme
from app.ui.answer_body import AnswerBody
from app.ui.labels import ElidedLabel

FRAME_MS = 33
NAMES: dict[ArmName, str] = {"baseline": "Plain", "dflash": "DFlash"}


class ArmPane(QWidget):
    """One mode's text, its rate above and its time below."""

    def __init__(self, name: ArmName, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.name, self._following = name, True
        self._title, self.rate, self.clock = QLabel(NAMES[name]), QLabel(), QLabel()
        for label, role in ((self.rate, "speed"), (self.clock, "time")):
            label.setFont(theme.figure_font())
            label.setAccessibleName(f"{NAMES[name]} {role}")
        self._title.setFont(theme.scaled_font(110, QFont.Weight.DemiBold))
        self.body = AnswerBody(text_size)
        page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        inner.addWidget(self.body)
        inner.addStretch(1)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setAccessibleName(f"{NAMES[name]} answer")
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(page)
        bar = self._scroll.verticalScrollBar()
        bar.rangeChanged.connect(lambda _low, high: bar.setValue(high) if self._following else None)
        bar.valueChanged.connect(self._on_scrolled)
        top = QHBoxLayout()
        top.addWidget(self._title)
        top.addStretch(1)
        top.addWidget(self.rate)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.M, theme.S)
        layout.setSpacing(theme.S)
        layout.addLayout(top)
        layout.addWidget(self._scroll, 1)
        layout.addWidget(self.clock)
        self.restyle(text_size)

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
        theme.tint(self._title, colour)
        theme.tint(self.rate, colour)

    def _on_scrolled(self, value: int) -> None:
        self._following = value >= self._scroll.verticalScrollBar().maximum() - 4


class CompareView(QWidget):
    """Signals ``replay_asked()``, ``copy_asked()`` and ``close_asked()`` come from its buttons."""

    replay_asked = Signal()
    copy_asked = Signal()
    close_asked = Signal()

    def __init__(self, text_size: int = 100, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName("Side by side")
        self._comparison: Comparison | None = None
        self._running: ArmName | None = None
        self._replay_began = 0.0
        self.panes: dict[ArmName, ArmPane] = {name: ArmPane(name, text_size) for name in ("baseline", "dflash")}
        self.prompt = ElidedLabel()
        self.prompt.setAccessibleName("Prompt")
        self.verdict = QLabel(wordWrap=True)
        self.verdict.setFont(theme.figure_font(110, QFont.Weight.DemiBold))
        self.verdict.setAccessibleName("Verdict")
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.details = QLabel()
        self.details.setFont(theme.figure_font(90))
        self.replay_button = self._button("Replay", "replay", self.replay_asked)
        self.copy_button = self._button("Copy report", "copy", self.copy_asked)
        self.close_button = self._button("Back to the chat", "", self.close_asked)
        self._clock = QTimer(self, interval=FRAME_MS)
        self._clock.setTimerType(Qt.TimerType.PreciseTimer)
        self._clock.timeout.connect(self._on_frame)
        self._lay_out()

    def _lay_out(self) -> None:
        panes = QHBoxLayout()
        panes.setSpacing(0)
        rule = QFrame(frameShape=QFrame.Shape.VLine, frameShadow=QFrame.Shadow.Plain)
        theme.tint(rule, theme.current().line)
        panes.addWidget(self.panes["baseline"], 1)
        panes.addWidget(rule)
        panes.addWidget(self.panes["dflash"], 1)
        words = QVBoxLayout()
        words.setSpacing(theme.XS)
        words.addWidget(self.verdict)
        words.addWidget(self.details)
        foot = QHBoxLayout()
        foot.setContentsMargins(theme.M, theme.S, theme.M, theme.S)
        foot.setSpacing(theme.S)
        foot.addLayout(words, 1)
        for button in (self.replay_button, self.copy_button, self.close_button):
            foot.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.S)
        top = QHBoxLayout()
        top.setContentsMargins(theme.L, theme.S, theme.L, 0)
        top.addWidget(self.prompt, 1)
        layout.addLayout(top)
        layout.addLayout(panes, 1)
        layout.addLayout(foot)

    # A run

    def start(self, comparison: Comparison) -> None:
        """Shows a new run."""
        self._clock.stop()
        self._comparison, self._running = comparison, None
        self.prompt.setText(" ".join(clean_text(comparison.prompt[:400]).split()))
        for pane in self.panes.values():
            pane.restart()
        self._show_figures()

    def start_arm(self, name: ArmName) -> None:
        """``name`` runs now."""
        self._running = name
        self._show_figures()

    def grow(self, name: ArmName) -> None:
        """More of ``name`` has been recorded."""
        if self._comparison is not None:
            arm = self._arm(name)
            self.panes[name].show_text(arm.text, complete=arm.finished is not None)
            self._show_figures()

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
        self._replay_began = time.monotonic()
        self._clock.start()
        self._on_frame()

    @property
    def replaying(self) -> bool:
        """Whether a replay runs."""
        return self._clock.isActive()

    def stop_replay(self) -> None:
        """Ends a replay and shows both texts whole."""
        if self._clock.isActive():
            self._clock.stop()
            for name, pane in self.panes.items():
                pane.show_text(self._arm(name).text, complete=True)
            self._show_figures()

    def _on_frame(self) -> None:
        assert self._comparison is not None
        now = time.monotonic() - self._replay_began
        if now >= self._comparison.duration_s:
            self.stop_replay()
            return
        for name, pane in self.panes.items():
            arm = self._arm(name)
            pane.show_text(self._comparison.text_at(name, now), complete=now >= arm.duration_s)
            pane.clock.setText(f"{min(now, arm.duration_s):.1f} s")

    # Figures

    def _show_figures(self) -> None:
        comparison = self._comparison
        for name, pane in self.panes.items():
            arm = self._arm(name) if comparison is not None else None
            rate = arm.tok_s if arm is not None else None
            waiting = "waits" if arm is not None and self._running not in (None, name) and not arm.text else ""
            doing = "running" if self._running == name else waiting
            pane.rate.setText(f"{rate:,.0f} tok/s" if rate is not None else doing)
            pane.clock.setText(f"{arm.duration_s:.1f} s" if arm is not None and arm.text else "")
        over = comparison is not None and self._running is None
        if comparison is None:
            self.verdict.setText("")
        elif over:
            self.verdict.setText(comparison.verdict_line())
        else:
            self.verdict.setText("Plain runs first, DFlash follows" if self._running == "baseline" else "DFlash runs")
        self.details.setText(self._details() if over else "")
        for button in (self.replay_button, self.copy_button):
            button.setEnabled(over)
        identical = over and comparison is not None and comparison.verdict is not None and comparison.verdict.identical
        faster = identical and comparison is not None and (comparison.speedup or 0) > 1
        colours = theme.current()
        failed = over and not identical
        theme.tint(self.verdict, colours.accent if faster else colours.warning if failed else colours.text)
        for name, pane in self.panes.items():
            pane.show_gain(name == "dflash" and faster)

    def _details(self) -> str:
        comparison = self._comparison
        if comparison is None or comparison.tokens_per_cycle is None:
            return ""
        parts = [f"{comparison.tokens_per_cycle:.1f} tokens per cycle"]
        if comparison.acceptance_rate is not None:
            parts.append(f"{comparison.acceptance_rate * 100:.0f} % accepted")
        return " · ".join(parts)

    def _arm(self, name: ArmName) -> ArmRecorder:
        assert self._comparison is not None
        return self._comparison.baseline if name == "baseline" else self._comparison.dflash

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        for pane in self.panes.values():
            pane.restyle(text_size)
        self.replay_button.setIcon(theme.icon("replay"))
        self.copy_button.setIcon(theme.icon("copy"))
        theme.tint(self.details, theme.current().quiet)
        self._show_figures()

    def _button(self, text: str, icon: str, signal) -> QPushButton:
        button = QPushButton(text)
        if icon:
            button.setIcon(theme.icon(icon))
        button.clicked.connect(signal)
        return button
