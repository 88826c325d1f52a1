"""The program in a process of its own, as end-to-end tests start and watch it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from app.services.wiring import CHATS
from app.store import ChatStore

LIMIT_S = 240.0


class Running:
    """The program in a process of its own, watched through its trace and its chat file."""

    def __init__(self, display: str, folder: Path, **variables: str):
        self.folder, self._trace = folder, folder / "trace.jsonl"
        environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
        environment |= {"DISPLAY": display, "SLIPSTREAM_TRACE": str(self._trace), "XDG_SESSION_TYPE": "x11"}
        environment |= variables
        environment.pop("WAYLAND_DISPLAY", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "--data", str(folder)], env=environment, stderr=subprocess.PIPE, text=True
        )

    def trace(self, kind: str = "", **wanted: object) -> list[dict]:
        if not self._trace.exists():
            return []
        lines = [json.loads(line) for line in self._trace.read_text().splitlines() if line.endswith("}")]
        return [
            line for line in lines
            if kind in ("", line["kind"]) and all(line.get(name) == value for name, value in wanted.items())
        ]  # fmt: skip

    def wait(self, done: Callable[[], object], what: str) -> None:
        end = time.monotonic() + LIMIT_S
        while not done():
            assert self.process.poll() is None, f"the program ended: {self.process.stderr.read()}"
            assert time.monotonic() < end, f"{what} did not happen within {LIMIT_S:.0f} s"
            time.sleep(0.1)

    def messages(self):
        store = ChatStore(self.folder / CHATS)
        try:
            return [store.messages(chat.id) for chat in store.chats()]
        finally:
            store.close()

    def close(self) -> None:
        """Ends the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        assert self.process.stderr is not None
        self.process.stderr.close()


def state_reached(running: Running, name: str, times: int = 1) -> Callable[[], bool]:
    """Whether the engine has been in the state ``name`` so often."""
    return lambda: len(running.trace("state", name=name)) >= times
