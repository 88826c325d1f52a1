"""What the windows promise, once more on a real X server: real focus, real key events, real window sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.x11 import screen

ROOT = Path(__file__).parents[2]
PROMISES = {
    "chats": "branches deleting sidebar transfer conversation",
    "answers": "answer_view blocks",
    "writing": "attachments documents chat_options options_pane",
    "keyboard": "find_and_palette keyboard window",
    "comparing and the meter": "compare_view meter_details meter_strip",
    "models": "models_window model_upkeep downloads loading pair_options",
    "the app": "habits settings first_run failures notices notifier server_page low_windows",
    "looks": "no_text_is_cut language",
}


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_the_windows_keep_their_promises_on_a_real_screen(promise: str, tmp_path: Path) -> None:
    files = [f"tests/gui/test_{name}.py" for name in PROMISES[promise].split()]
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'run'}", *files]
    with screen() as display:
        environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4_000:]
