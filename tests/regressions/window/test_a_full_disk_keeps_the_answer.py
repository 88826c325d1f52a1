"""lmstudio-ai/lmstudio-bug-tracker#232, #703, #889: with a full disk the app quit silently and the text was gone."""

from __future__ import annotations

import pytest

from app.services import conversation
from app.services.wiring import CHATS
from app.store import ChatStore
from tests.gui.conftest import wait_ready


def fill_disk(services, room: int = 0) -> None:
    """Leaves the chat file ``room`` pages to grow, as a full disk does."""
    (pages,) = services.store._db.execute("PRAGMA page_count").fetchone()
    services.store._db.execute(f"PRAGMA max_page_count = {pages + room}")


def free_disk(services) -> None:
    services.store._db.execute("PRAGMA max_page_count = 1000000")


@pytest.fixture
def full(qtbot, window, loader):
    """A window whose disk became full during an answer that was then stopped."""
    loader.script.rate, loader.script.tokens, loader.script.text = 2_000.0, 8_000, "Some words of a long answer. "
    window.services.settings.update(max_tokens=8_000)
    window.composer.set_text("Long story")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 500), timeout=20_000)
    fill_disk(window.services, 1)
    qtbot.waitUntil(lambda: "disk is full" in window.banner.text, timeout=20_000)
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 12_000), timeout=20_000)
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    return window


def on_disk(tmp_path) -> str:
    other = ChatStore(tmp_path / CHATS)
    text = other.messages(other.chats()[0].id)[-1].content
    other.close()
    return text


def test_the_answer_goes_on_in_the_window_and_what_fitted_is_on_the_disk(qtbot, full, tmp_path):
    shown = full.services.conversation.messages[-1]
    assert shown.state == "stopped" and full.transcript.answers[-1].body.text == shown.content
    assert "disk is full" in full.banner.text
    kept = on_disk(tmp_path)
    assert kept and shown.content.startswith(kept) and len(kept) < len(shown.content)


def test_once_there_is_room_the_whole_answer_is_written_and_chats_go_on(qtbot, full, tmp_path, monkeypatch, loader):
    shown = full.services.conversation.messages[-1].content
    chat = full.services.conversation.chat.id
    full.do.new_chat()
    full.do.open_chat(chat)
    assert full.services.conversation.messages[-1].content == shown  # also where it is read anew
    full.services.conversation._again.setInterval(20)
    free_disk(full.services)
    qtbot.waitUntil(lambda: on_disk(tmp_path) == shown, timeout=20_000)
    assert not full.services.conversation._again.isActive() and conversation.AGAIN_MS > 1_000
    loader.script.rate, loader.script.tokens = 0.0, 10
    full.composer.set_text("And then?")
    full.do.send()
    wait_ready(qtbot, full.services.client)
    assert full.services.conversation.messages[-1].state == "done" and full.banner.text == ""


def test_quitting_once_there_is_room_keeps_the_whole_answer(qtbot, full, tmp_path):
    shown = full.services.conversation.messages[-1].content
    free_disk(full.services)
    full.retire()
    assert full.services.shutdown()
    assert on_disk(tmp_path) == shown
