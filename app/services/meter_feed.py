"""Feeds the meter with what the engine client reports, and announces a snapshot ten times a second while it works."""

from __future__ import annotations

import time
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.cycle_log import CycleLog
from app.core.meter import Meter, MeterSnapshot
from app.core.option_words import in_force
from app.services.engine_client import BUSY, EngineClient, EngineState, Timed
from app.worker import Failure
from engine import GenerationRequest, LoadProgress

REFRESH_MS = 100


class MeterFeed(QObject):
    """Signal ``changed(MeterSnapshot)``. The clock is the worker's, so that a busy window does not bend the rate.

    ``log`` has the cycles of the answer on show.
    """

    changed = Signal(object)

    def __init__(self, client: EngineClient, parent: QObject | None = None):
        super().__init__(parent)
        self._client, self._meter, self.log = client, Meter(), CycleLog()
        self._meter.reset(time.monotonic())
        self._request: GenerationRequest | None = None  # of the answer on show
        self._asked: GenerationRequest | None = None  # in the window, perhaps still waiting
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self._announce)
        client.state_changed.connect(self._on_state)
        client.requested.connect(self._on_requested)
        client.events.connect(self._on_events)
        client.loading.connect(self._on_loading)
        client.ended.connect(self._on_ended)
        client.lending.began.connect(lambda request: self._begin(request, lent=True))
        client.lending.events.connect(self._on_lent_events)
        client.lending.ended.connect(self._on_lent_ended)
        client.load_failed.connect(lambda failure: self._on_ended(0, failure))

    def snapshot(self) -> MeterSnapshot:
        """What to show now; "no_model" while idle with nothing to answer."""
        snapshot = replace(self._meter.snapshot(time.monotonic()), options=in_force(self._request, self._client.info))
        if snapshot.phase == "idle" and self._client.state in (EngineState.NO_MODEL, EngineState.LOST):
            return replace(snapshot, phase="no_model")
        return snapshot

    def clear(self) -> None:
        """Forgets the last answer, for another chat; what still runs stays on show."""
        if not self._client.busy and not self._client.lending.active:
            self._request = None
            self.log.begin()
            self._meter.reset(time.monotonic())
            self._announce()

    def _on_state(self, state: EngineState) -> None:
        over = state not in BUSY and self.snapshot().phase == "loading"
        if state is EngineState.LOADING or over or state is EngineState.NO_MODEL:  # the figures were of a model that is gone
            self._meter.reset(time.monotonic())
            self.log.begin()
        elif state is EngineState.PREFILL and self._meter.lent and self._asked is not None:  # its turn has come
            self._begin(self._asked)
        self._run_timer()
        self._announce()

    def _run_timer(self) -> None:
        if self._client.state in BUSY or self._client.lending.active:
            self._timer.start()
        else:
            self._timer.stop()

    def _on_requested(self, request: GenerationRequest) -> None:
        self._asked = request
        if not self._client.lending.active:  # or it waits
            self._begin(request)

    def _begin(self, request: GenerationRequest, lent: bool = False) -> None:
        self._request = request
        self._meter.reset(time.monotonic(), request.mode, self._client.info, lent)
        self.log.begin()
        self._run_timer()
        self._announce()

    def _on_lent_events(self, events: list[Timed]) -> None:
        if self._meter.lent:  # not after the model was given up for another
            self._on_events(0, events)

    def _on_lent_ended(self, failed: bool) -> None:
        if failed and self._meter.lent:
            self._meter.interrupt(time.monotonic())
        self._run_timer()
        self._announce()

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        for timed in events:
            self._meter.feed(timed.event, timed.at)
            self.log.feed(timed.event)

    def _on_loading(self, progress: LoadProgress) -> None:
        self._meter.feed(progress, time.monotonic())

    def _on_ended(self, request_id: int, failure: Failure | None) -> None:
        if failure is not None:
            self._meter.interrupt(time.monotonic())
        self._announce()

    def _announce(self) -> None:
        self.changed.emit(self.snapshot())
