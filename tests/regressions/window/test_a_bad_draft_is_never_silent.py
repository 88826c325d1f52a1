"""jundot/omlx#2896: DFlash failed to start, and plain decoding was served without a word."""

from __future__ import annotations

import pytest

from app.services.engine_client import EngineState
from engine import ModelError
from tests.gui.conftest import load, wait_ready

REASON = "The draft does not fit this model."


def test_the_meter_says_plain_and_why_and_so_does_the_kept_answer(qtbot, window, loader):
    loader.script.fallback = REASON
    load(qtbot, window.services.client)
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert window.meter.status.text() == "Plain" and window.meter.reason.isVisible()
    assert window.meter.reason.toolTip() == REASON
    statistics = window.services.conversation.messages[-1].statistics
    assert statistics["fallback"] == REASON and statistics["mode"] == "baseline"
    assert REASON in window.services.meter.snapshot().off_reason


@pytest.mark.parametrize("problem", ["The draft d belongs to another target (hidden size): choose the draft made for this one."])
def test_a_draft_that_cannot_be_loaded_is_refused_in_words_and_nothing_is_served(qtbot, window, loader, problem):
    loader.script.load_error = ModelError(problem)
    window.do.load_model("broken")
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    assert window.banner.text == problem and window.banner.action.isVisible()
    assert window.meter.status.text() == "No model" and not window.situation().idle
