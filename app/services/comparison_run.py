"""Runs one prompt plainly, then with DFlash, through the one engine, and records both for the side-by-side view."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.core.compare import ArmName, ArmRecorder, Comparison
from app.services.engine_client import EngineClient, Timed
from app.worker import Failure
from engine import GenerationRequest

ARMS: tuple[ArmName, ...] = ("baseline", "dflash")


class ComparisonRun(QObject):
    """Signals: ``started(Comparison)``; ``arm_started(name)``; ``grew(name)``; ``ended(Failure | None)`` once a run."""

    started = Signal(object)
    arm_started = Signal(str)
    grew = Signal(str)
    ended = Signal(object)

    def __init__(self, client: EngineClient, parent: QObject | None = None):
        super().__init__(parent)
        self._client = client
        self.comparison: Comparison | None = None
        self.running: ArmName | None = None
        self.request: GenerationRequest | None = None
        self._request_id, self._stopped = 0, False
        client.events.connect(self._on_events)
        client.ended.connect(self._on_ended)

    def start(self, prompt: str, request: GenerationRequest) -> None:
        """Runs ``request`` in both modes, everything else the same: neither may start from what an earlier answer left."""
        self.comparison = Comparison(prompt, ArmRecorder("baseline"), ArmRecorder("dflash"))
        self.request, self._stopped = request, False
        self.started.emit(self.comparison)
        self._start_arm("baseline")

    def stop(self) -> None:
        """The arm that runs is stopped by the client; this keeps the next one from starting."""
        self._stopped = self.running is not None

    def arm(self, name: ArmName) -> ArmRecorder:
        """The recorder of one mode. A run must have been started."""
        assert self.comparison is not None
        return self.comparison.baseline if name == "baseline" else self.comparison.dflash

    def best_arm(self) -> ArmRecorder | None:
        """The arm whose answer the chat keeps: DFlash's, unless it was cut short and plain decoding got further."""
        if self.comparison is None:
            return None
        return max(self.comparison.dflash, self.comparison.baseline, key=lambda arm: len(arm.text))

    def longest_text(self) -> str:
        """The longest text so far, for saving while the run goes on."""
        arm = self.best_arm()
        return arm.text if arm is not None else ""

    def _start_arm(self, name: ArmName) -> None:
        assert self.request is not None
        self.running = name
        self.arm_started.emit(name)
        self._request_id = self._client.generate(replace(self.request, mode=name, use_cache=False))

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        if self.running is None or request_id != self._request_id:
            return
        arm = self.arm(self.running)
        for timed in events:
            arm.feed(timed.event)
        self.grew.emit(self.running)

    def _on_ended(self, request_id: int, failure: Failure | None) -> None:
        if self.running is None or request_id != self._request_id:
            return
        arm, finished_name = self.arm(self.running), self.running
        if failure is not None:
            arm.fail(failure.message)
        was_cut = arm.finished is None or arm.finished.reason == "cancelled"
        if finished_name == "baseline" and failure is None and not was_cut and not self._stopped:
            self._start_arm("dflash")
            return
        self.running = None
        self.ended.emit(failure)
