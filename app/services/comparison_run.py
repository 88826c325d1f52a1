"""Runs one prompt in two ways of decoding, one after the other, through the one engine, and records both for the view."""

from __future__ import annotations

import time
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.core.arms import chosen
from app.core.compare import ArmRecorder, Comparison, Side
from app.core.option_words import in_force, options_report
from app.services.engine_client import EngineClient, Timed
from app.services.environment import describe
from app.services.settings import SettingsService
from app.worker import Failure
from engine import GenerationRequest


class ComparisonRun(QObject):
    """Signals: ``started(Comparison)``; ``arm_started(side)``; ``grew(side)``; ``ended(Failure | None)`` once a run."""

    started = Signal(object)
    arm_started = Signal(str)
    grew = Signal(str)
    ended = Signal(object)

    def __init__(self, client: EngineClient, settings: SettingsService, parent: QObject | None = None):
        super().__init__(parent)
        self._client, self._settings = client, settings
        self.comparison: Comparison | None = None
        self.running: Side | None = None
        self.request: GenerationRequest | None = None
        self._request_id, self._stopped = 0, False
        client.events.connect(self._on_events)
        client.ended.connect(self._on_ended)

    def start(self, prompt: str, request: GenerationRequest) -> None:
        """Runs ``request`` in the two ways that the settings name, everything else the same."""
        pair = self._client.info
        left, right = (ArmRecorder(arm) for arm in chosen(self._settings.current.arms, pair))
        asked = replace(request, use_cache=True)  # neither arm uses what is kept, whatever is asked
        settings, options = options_report(asked, pair), in_force(asked, pair)
        self.comparison = Comparison(prompt, left, right, pair, describe(), time.time(), settings, options)
        self.request, self._stopped = request, False
        self.started.emit(self.comparison)
        self._start_arm("left")

    def stop(self) -> None:
        """The arm that runs is stopped by the client; this keeps the next one from starting."""
        self._stopped = self.running is not None

    def show(self, comparison: Comparison) -> None:
        """Puts an earlier comparison in the place of the last one; not while one runs."""
        if self.running is None:
            self.comparison = comparison

    def best_arm(self) -> ArmRecorder | None:
        """The arm whose answer the chat keeps: the right one, unless it was cut short and the left one got further."""
        if self.comparison is None:
            return None
        return max(self.comparison.right, self.comparison.left, key=lambda arm: len(arm.text))

    def longest_text(self) -> str:
        """The longest text so far, for saving while the run goes on."""
        arm = self.best_arm()
        return arm.text if arm is not None else ""

    def _start_arm(self, side: Side) -> None:
        assert self.request is not None and self.comparison is not None
        self.running = side
        self.arm_started.emit(side)
        self._request_id = self._client.generate(self.comparison.side(side).arm.request(self.request))

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        if self.running is None or self.comparison is None or request_id != self._request_id:
            return
        recorder = self.comparison.side(self.running)
        for timed in events:
            recorder.feed(timed.event)
        self.grew.emit(self.running)

    def _on_ended(self, request_id: int, failure: Failure | None) -> None:
        if self.running is None or self.comparison is None or request_id != self._request_id:
            return
        recorder, side = self.comparison.side(self.running), self.running
        if failure is not None:
            recorder.fail(failure.message)
        was_cut = recorder.finished is None or recorder.finished.reason == "cancelled"
        if side == "left" and failure is None and not was_cut and not self._stopped:
            self._start_arm("right")
            return
        self.running = None
        for arm in self.comparison.arms:
            arm.end()
        now, before = self._client.info, self.comparison.pair
        if now is not None and before is not None and now.id == before.id:
            self.comparison = replace(self.comparison, pair=now)  # it may have been measured for exact answers meanwhile
        self.ended.emit(failure)
