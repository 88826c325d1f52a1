"""lmstudio-ai/lmstudio-bug-tracker#573, open-webui/open-webui#1567: Stop did nothing while loading, or the GPU worked on."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt

from app.services.engine_client import EngineState
from engine import Message
from tests.gui.conftest import wait_ready

STATES = ("queued", "loading", "prefill", "decode")


def begin(qtbot, window, loader, state: str) -> None:
    """Brings the window into ``state``; "queued": the answer waits behind learning that ends between two long passes."""
    client, script = window.services.client, loader.script
    if state == "loading":
        script.load_s = 30.0
        window.do.load_model("another")
        qtbot.waitUntil(lambda: client.state is EngineState.LOADING, timeout=20_000)
        return
    if state == "queued":
        script.learning_step_s = 0.2
        assert client.learn([[Message("user", "Hello")]])
    script.prefill_s = 30.0 if state == "prefill" else 0.0
    script.rate, script.tokens = 5.0, 1_000
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wanted = EngineState.DECODING if state == "decode" else EngineState.PREFILL
    qtbot.waitUntil(lambda: client.state is wanted, timeout=20_000)


@pytest.mark.parametrize("way", ["button", "escape"])
@pytest.mark.parametrize("state", STATES)
def test_stop_acts_at_once_and_the_engine_is_free_again(qtbot, window, loader, state, way):
    begin(qtbot, window, loader, state)
    client, began = window.services.client, time.monotonic()
    if way == "button":
        qtbot.mouseClick(window.composer.button, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(window, Qt.Key.Key_Escape)
    after = EngineState.NO_MODEL if state == "loading" else EngineState.READY
    qtbot.waitUntil(lambda: client.state is after, timeout=20_000)
    assert time.monotonic() - began < 5.0, "the slow parts take 7 s and more"
    loader.script.load_s = loader.script.prefill_s = loader.script.rate = 0.0
    loader.script.tokens = 10
    if state == "loading":
        client.load("scripted")
        wait_ready(qtbot, client)
    before = len(loader.engines[-1].requests)
    window.composer.set_text("Hello")
    window.do.send()
    wait_ready(qtbot, client)
    assert len(loader.engines[-1].requests) == before + 1
    assert window.services.conversation.messages[-1].state == "done"
