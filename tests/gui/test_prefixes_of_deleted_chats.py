"""What the prefix cache keeps of a chat goes with it when it is deleted for good: real store, cache and engine thread."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.services.engine_client import EngineState
from app.services.shelf import KEPT_DAYS
from app.services.wiring import Services
from engine.models import ResolvedPair
from tests.engine.bench.pairs import write_pair
from tests.gui.conftest import delete_later, wait_ready

SLOW = 20_000  # ms; on whatever processor there is
STORY = "hello there and again " * 90


def kept(home: Path) -> list[Path]:
    """What is stored of prompts, the index of it among it."""
    folder = home / "cache" / "prefix"
    return [*folder.glob("*.segment"), *folder.glob("index"), *folder.glob(".*.partial")]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("engine.loading.measure_chunk", lambda target: 128)  # a tiny model's would be all of the prompt
    monkeypatch.setattr("engine.prefix.cache.SHORT_TOKENS", 128)  # its context holds 512
    return tmp_path / "home"


@pytest.fixture
def real(qtbot, tmp_path, home, starter: ResolvedPair):
    """Services over the real worker, a tiny pair loaded, and one answered chat whose prompt is on disk."""
    services = Services(tmp_path)
    services.settings.update(max_tokens=4)
    services.client.load(write_pair(tmp_path / "pair", starter))
    wait_ready(qtbot, services.client, SLOW)
    with qtbot.waitSignal(services.conversation.answer_ended, timeout=SLOW):
        assert services.conversation.send(STORY, "dflash")
    wait_ready(qtbot, services.client, SLOW)
    qtbot.waitUntil(lambda: bool(kept(home)), timeout=SLOW)
    yield services
    assert services.shutdown(30.0)
    delete_later(services)


def forgotten(qtbot, services: Services) -> None:
    qtbot.waitUntil(lambda: not services.client._asides, timeout=SLOW)


def test_deleting_a_chat_keeps_its_prefixes_and_deleting_it_for_good_takes_them(qtbot, real, home) -> None:
    chat = real.conversation.chat.id
    real.shelf.delete(chat)
    forgotten(qtbot, real)
    assert kept(home), "it can still be taken back"
    real.shelf.delete_for_good([chat])
    assert real.client._asides, "the window waits for nothing"
    forgotten(qtbot, real)
    assert kept(home) == []
    with qtbot.waitSignal(real.conversation.answer_ended, timeout=SLOW):
        assert real.conversation.send(STORY, "dflash")
    wait_ready(qtbot, real.client, SLOW)
    assert real.conversation.messages[-1].statistics["cached_tokens"] == 0, "memory has forgotten it too"


def test_without_a_loaded_model_they_go_too(qtbot, real, home) -> None:
    chat = real.conversation.chat.id
    real.client.unload()
    qtbot.waitUntil(lambda: real.client.state is EngineState.NO_MODEL, timeout=SLOW)
    real.shelf.delete(chat)
    assert kept(home)
    real.shelf.delete_for_good([chat])
    forgotten(qtbot, real)
    assert kept(home) == []


@pytest.mark.parametrize("days", [KEPT_DAYS - 1, KEPT_DAYS + 1])
def test_a_start_that_purges_old_chats_takes_them_and_any_other_leaves_them(qtbot, tmp_path, home, monkeypatch, days) -> None:
    folder = home / "cache" / "prefix"
    folder.mkdir(parents=True)
    (folder / f"{'a' * 64}.segment").write_bytes(b"tokens of a chat")
    before = Services(tmp_path)
    chat = before.store.create_chat("Gone")
    then = time.time() - days * 86_400
    monkeypatch.setattr(time, "time", lambda: then)
    before.store.delete_chat(chat.id)
    monkeypatch.undo()
    monkeypatch.setenv("SLIPSTREAM_HOME", str(home))
    assert before.shutdown(30.0)
    delete_later(before)
    services = Services(tmp_path)
    forgotten(qtbot, services)
    assert bool(kept(home)) == (days < KEPT_DAYS)
    assert services.shutdown(30.0)
    delete_later(services)
