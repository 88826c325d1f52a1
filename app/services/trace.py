"""Writes the engine's events and what the window shows of them to a file, one JSON object a line, when asked to.

``SLIPSTREAM_TRACE=FILE`` turns it on, for bug reports and for tests that watch a real window from outside.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject

from app.services.engine_client import EngineState, Timed

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

VARIABLE = "SLIPSTREAM_TRACE"


class Trace(QObject):
    """Follows one window until it is deleted."""

    def __init__(self, window: MainWindow, path: Path):
        super().__init__(window)
        self._window = window
        self._file = path.open("a", encoding="utf-8")
        client = window.services.client
        client.events.connect(self._on_events)
        client.state_changed.connect(self._on_state)
        window.services.conversation.answer_ended.connect(lambda _message: self._show("answer"))
        window.services.conversation.comparison.ended.connect(lambda _failure: self._show("comparison"))
        window.destroyed.connect(self._file.close)

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        for timed in events:
            self._write("event", request=request_id, type=type(timed.event).__name__, **asdict(timed.event))

    def _on_state(self, state: EngineState) -> None:
        self._write("state", name=state.name)

    def _show(self, reason: str) -> None:
        window = self._window
        meter = {key: label.text() for key, label in window.meter.figures.items()}
        self._write("shown", reason=reason, meter=meter, status=window.meter.status.text(),
                    verdict=window.compare.verdict.text(), banner=window.banner.text)  # fmt: skip

    def _write(self, kind: str, **values: Any) -> None:
        self._file.write(json.dumps({"kind": kind, **values}) + "\n")
        self._file.flush()


def follow(window: MainWindow) -> Trace | None:
    """Starts a trace if the environment asks for one."""
    path = os.environ.get(VARIABLE)
    return Trace(window, Path(path)) if path else None
