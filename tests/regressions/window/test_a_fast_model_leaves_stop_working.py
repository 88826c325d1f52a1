"""egoist/chatwise-releases#1412, Kochava-Studios/witsy#426, unslothai/unsloth PR#8845: a fast model outran the window and Stop.

How long Stop takes is measured in tests/perf; here it has to act within one drain of the events.
"""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.services.engine_client import EngineState
from tests.gui.conftest import load, wait_ready


def test_stop_is_heard_while_400_tokens_a_second_stream(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 400.0, 20_000
    window.services.settings.update(max_tokens=20_000)
    load(qtbot, window.services.client)
    window.composer.set_text("Go on")
    window.do.send()
    client = window.services.client
    qtbot.waitUntil(lambda: client.state is EngineState.DECODING, timeout=20_000)
    qtbot.waitUntil(lambda: len(window.transcript.answers[-1].body.text) > 1_000, timeout=20_000)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    assert client.state is EngineState.STOPPING and not window.composer.button.isEnabled()
    shown = len(window.transcript.answers[-1].body.text)
    wait_ready(qtbot, client, timeout=20_000)
    answer = window.transcript.answers[-1]
    assert answer.message.state == "stopped" and len(answer.body.text) - shown < 400
