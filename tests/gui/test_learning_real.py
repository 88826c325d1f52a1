"""Learning through the window's own worker with a small real pair: a better draft is swapped in, a worse one is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.services.engine_client import EngineState
from app.services.wiring import Services
from engine.learned import learned_folder
from tests.engine.learning_pair import CHATS, QUESTIONS, TEACHES, write_spoiled_pair
from tests.gui.conftest import delete_later, wait_ready

SLOW = 120_000  # ms; on whatever processor there is


@pytest.fixture
def real(qtbot, tmp_path, monkeypatch):
    """Services over the real worker with some chats, the pair loaded, learning agreed to."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("engine.learning.BACKGROUND", TEACHES)
    services = Services(tmp_path)
    services.settings.update(learn_from_chats=True, max_tokens=24)
    for chat in CHATS:
        kept = services.store.create_chat(chat[0].content)
        services.store.add_message(kept.id, "user", chat[0].content, "sent")
    services.client.load(write_spoiled_pair(tmp_path / "pair"))
    wait_ready(qtbot, services.client, SLOW)
    yield services
    assert services.shutdown(30.0)
    delete_later(services)


def ask(qtbot, services: Services) -> dict:
    """The text and figures of one answer, in a chat of its own."""
    services.conversation.open(None)
    with qtbot.waitSignal(services.conversation.answer_ended, timeout=SLOW):
        assert services.conversation.send(QUESTIONS[0], "dflash")
    wait_ready(qtbot, services.client, SLOW)
    answer = services.conversation.messages[-1]
    assert answer.state == "done" and answer.statistics is not None
    return {"text": answer.content, **answer.statistics}


def learn(qtbot, services: Services) -> None:
    services.learning.learn_now()
    qtbot.waitUntil(lambda: not services.client._asides and services.learning._run is None, timeout=SLOW)


def test_a_prompt_interrupts_learning_and_the_better_draft_is_swapped_in_later_and_out_again(qtbot, real) -> None:
    before = ask(qtbot, real)
    real.learning.learn_now()
    qtbot.waitUntil(lambda: "step" in real.learning.status, timeout=SLOW)
    during = ask(qtbot, real)
    assert real.client.info.learned is None and during["text"] == before["text"]
    assert list(learned_folder().glob("*/run-*/run-state.safetensors"))
    learn(qtbot, real)
    figures = real.client.info.learned
    assert figures is not None and figures.in_use and figures.after > 1.02 * figures.before
    after = ask(qtbot, real)
    assert after["text"] == before["text"] and real.client.state is EngineState.READY
    real.learning.use(False)
    qtbot.waitUntil(lambda: not real.learning.learned_in_use, timeout=SLOW)
    original = ask(qtbot, real)
    assert original["text"] == before["text"]
    real.learning.forget()
    qtbot.waitUntil(lambda: not real.client._asides, timeout=SLOW)
    assert not learned_folder().exists() and real.client.info.learned is None


def test_a_worse_draft_is_refused(qtbot, real, monkeypatch) -> None:
    monkeypatch.setattr("engine.learning.BACKGROUND", replace(TEACHES, rate=0.3, steps=4, evaluate_every=2))
    learn(qtbot, real)
    assert "no real gain" in real.learning.status
    assert real.client.info.learned is None and not list(learned_folder().rglob("*.safetensors"))
