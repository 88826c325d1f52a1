"""A value of the settings table that is damaged or of another kind costs that value: the window opens, and every chat is there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from app.services.wiring import CHATS
from app.store import ChatStore

KEYS = ("settings", "geometry", "panes", "last_chat", "collapsed_folders", "presets", "downloads", "model_folders",
        "fetched_drafts", "learning_run", "learned_until", "draft:new", "tour_seen", "updates_looked_at")  # fmt: skip
DAMAGED = ('{"not": json', "", "null", "5", '"text"', "[1, 2]", '{"a": 1}', '{"attachments": 5}')


def write(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / CHATS) as db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize("value", DAMAGED)
def test_no_value_of_the_settings_table_keeps_the_window_from_opening(qtbot, make_services, make_window, tmp_path, value):
    ChatStore(tmp_path / CHATS).close()
    for key in KEYS:
        write(tmp_path, "INSERT OR REPLACE INTO settings VALUES (?, ?)", key, value)
    services = make_services()
    window = make_window(services)
    services.catch_up()
    services.learning.tick()
    assert window.services.settings.current.pair and window.isVisible()


def test_a_chat_opens_without_the_options_figures_and_files_that_are_damaged(qtbot, make_services, make_window, tmp_path):
    store = ChatStore(tmp_path / CHATS)
    chat = store.create_chat("Rainbows")
    store.add_message(chat.id, "user", "Explain rainbows", "sent")
    store.set_setting("last_chat", chat.id)
    store.close()
    write(tmp_path, "UPDATE chats SET options = '{'")
    write(tmp_path, "UPDATE messages SET statistics = '[1', attachments = '{\"a\": 1}'")
    window = make_window(make_services())
    (message,) = window.services.conversation.messages
    assert (message.content, message.statistics, message.attachments) == ("Explain rainbows", None, ())
