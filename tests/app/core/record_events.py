"""Records runs of the starter pair as event files: python -m tests.app.core.record_events (writes recorded/*.json)."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import engine
from engine import Event, Finished, GenerationRequest, Statistics

FOLDER = Path(__file__).parent / "recorded"
CODE = "Write a Python function that checks whether a string is a palindrome."
REQUESTS = {
    "dflash_limit": GenerationRequest.of(CODE, mode="dflash", max_tokens=48),
    "dflash_stop": GenerationRequest.of("Say hello in five words.", mode="dflash"),
    "baseline_limit": GenerationRequest.of(CODE, mode="baseline", max_tokens=48),
    "dflash_cancelled": GenerationRequest.of(CODE, mode="dflash", max_tokens=200),
}
# A run named "cancelled" is stopped after this many events.
CANCEL_AFTER = 12


def read(name: str) -> list[Event]:
    """The events of a recorded run."""
    return [_event(entry) for entry in json.loads((FOLDER / f"{name}.json").read_text())]


def _event(entry: dict[str, Any]) -> Event:
    fields = {key: value for key, value in entry.items() if key != "event"}
    if "token_ids" in fields:
        fields["token_ids"] = tuple(fields["token_ids"])
    if entry["event"] == "Finished":
        return Finished(**{**fields, "statistics": Statistics(**fields["statistics"])})
    return getattr(engine, entry["event"])(**fields)


def record() -> None:
    """Runs every request and writes its events."""
    FOLDER.mkdir(exist_ok=True)
    pair = engine.load("starter")
    for name, request in REQUESTS.items():
        cancel, events = threading.Event(), []
        for event in pair.generate(request, cancel):
            events.append({"event": type(event).__name__, **asdict(event)})
            if name.endswith("cancelled") and len(events) == CANCEL_AFTER:
                cancel.set()
        lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
        (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    record()
