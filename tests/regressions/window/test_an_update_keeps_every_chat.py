"""chatboxai/chatbox#871, anthropics/claude-code#56904: after an update the history was empty or lost."""

from __future__ import annotations

import shutil
from pathlib import Path

from app.services.wiring import CHATS
from app.store import ChatStore

VERSION_1 = Path(__file__).parents[2] / "app" / "store" / "released" / "chats-v1.sqlite3"


def test_a_chat_file_of_the_first_version_shows_every_chat_in_the_window(qtbot, tmp_path, make_services, make_window):
    shutil.copy(VERSION_1, tmp_path / CHATS)
    window = make_window(make_services())
    assert window.sidebar.chats.titles()[1:] == ["Code", "Rainbows 虹", "Empty chat"]
    assert [message.content for message in window.services.conversation.messages] == [
        "Explain rainbows 虹の色 👩\u200d👩\u200d👧", "Sunlight in a **drop**.", "Sunlight, once more.", "And at night?", "",
    ]  # fmt: skip
    assert window.composer.text() == "half a thought"
    assert window.services.settings.current.temperature == 0.5
    assert window.services.recovered == 1


def test_the_file_before_the_update_is_kept_whole(qtbot, tmp_path, make_services):
    shutil.copy(VERSION_1, tmp_path / CHATS)
    services = make_services()
    services.store.delete_chat(services.store.chats()[0].id)
    services.shutdown()
    backup = ChatStore(tmp_path / f"{CHATS}.backup-v1")
    assert [chat.title for chat in backup.chats()] == ["Code", "Rainbows 虹", "Empty chat"]
    backup.close()
