"""Looks at the system's memory pressure between passes: gives up what can be made again, and stops before the system suffers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Literal

from engine.events import Event, Fallback, Finished
from engine.sysctl import system_number

Pressure = Literal["normal", "warning", "critical"]
EVERY_S = 1.0
LEVELS: dict[int, Pressure] = {1: "normal", 2: "warning", 4: "critical"}
STOPPED = "This machine is out of memory, so the answer was stopped: close other programs, or choose a smaller model."


def system_pressure() -> Pressure:
    """What macOS says of its memory; other systems are always normal, they have no such level."""
    return LEVELS.get(system_number("kern.memorystatus_vm_pressure_level") or 1, "normal")


def guarded(events: Generator[Event], shed: Callable[[], None], cancel: threading.Event) -> Iterator[Event]:
    """Passes ``events`` on. Under a warning ``shed`` is called once; at a critical level the answer is cancelled and says why."""
    looked, level = float("-inf"), "normal"
    with closing(events):
        for event in events:
            yield event
            if isinstance(event, Finished) or cancel.is_set() or (now := time.monotonic()) - looked < EVERY_S:
                continue
            looked, before, level = now, level, system_pressure()
            if level != "normal" and before == "normal":
                shed()
            if level == "critical":
                cancel.set()
                yield Fallback(STOPPED)
