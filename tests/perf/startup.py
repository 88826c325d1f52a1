"""How long a cold start takes, from the start of the process: ``python -m tests.perf.startup [RUNS]``.

Three figures: the imports of the window's process without the engine, the window drawn and ready for input, and the
starter pair ready to answer. Ends with 1 where a median is over its limit. Nothing else should be running.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

LIMITS_S = {"imports": 0.6, "window": 2.0, "starter ready": 5.0}
IMPORTS = "import app.main, time; print('imports', time.monotonic())"
WINDOW = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QEvent, QObject, QTimer
from app import main
from app.services.engine_client import EngineState


class Watch(QObject):
    seen = False

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and not self.seen:
            self.seen = True
            QTimer.singleShot(0, lambda: print("window", time.monotonic(), flush=True))  # after what was due before it
        return False


class Program(main.Program):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.watch = Watch()
        self.window.composer.edit.viewport().installEventFilter(self.watch)
        self.services.client.state_changed.connect(self.note)

    def note(self, state):
        if state is EngineState.READY:
            print("starter ready", time.monotonic(), flush=True)
            QTimer.singleShot(0, self.quit)


main.Program = Program
sys.exit(main.run(main.Options("starter", Path(sys.argv[1]))))
"""


def run(code: str) -> dict[str, float]:
    """Seconds from before the process was started to each line that it printed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ) | {"QT_QPA_PLATFORM": "offscreen"}
        start = time.monotonic()  # the same clock in every process of a machine
        done = subprocess.run([sys.executable, "-c", code, folder], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return {name: float(at) - start for name, _, at in (line.rpartition(" ") for line in done.stdout.splitlines())}


def main(runs: int) -> int:
    """Prints median and range of each figure. The first run warms the disk cache and is not counted."""
    figures: dict[str, list[float]] = {name: [] for name in LIMITS_S}
    for turn in range(runs + 1):
        for name, seconds in {**run(IMPORTS), **run(WINDOW)}.items():
            if turn:
                figures[name].append(seconds)
    slow = 0
    for name, values in figures.items():
        median, limit = statistics.median(values), LIMITS_S[name]
        slow += median > limit
        print(f"{name:<14} median {median:.2f} s, {min(values):.2f} to {max(values):.2f} s of {len(values)}, limit {limit:.1f} s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
