"""nomic-ai/gpt4all#1472 (Qt): deleting a chat while a model was loading made the window hang."""

from __future__ import annotations

from PySide6.QtCore import QTimer

from app.services.engine_client import EngineState
from tests.gui.conftest import wait_ready


def test_the_chat_is_gone_and_the_window_lives_while_the_model_still_loads(qtbot, make_window, services, loader):
    chat = services.store.create_chat("Gone")
    services.store.add_message(chat.id, "user", "text", "sent")
    window = make_window(services)
    window.do.open_chat(chat.id)
    loader.script.load_s = 2.0
    services.client.load("scripted")
    qtbot.waitUntil(lambda: services.client.state is EngineState.LOADING, timeout=20_000)
    window.do.delete_chat()
    beats: list[int] = []
    QTimer.singleShot(0, window, lambda: beats.append(1))
    qtbot.waitUntil(lambda: bool(beats), timeout=20_000)
    assert services.client.state is EngineState.LOADING, "deleting waited for the model"
    assert services.store.chats() == [] and window.sidebar.chats.titles() == [] and services.conversation.chat is None
    window.do.undo_delete()
    assert services.client.state is EngineState.LOADING and services.conversation.chat.id == chat.id
    wait_ready(qtbot, services.client)
