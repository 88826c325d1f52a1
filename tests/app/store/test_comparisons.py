"""The history of comparisons shares the chat file, and files from before it keep all they held."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.sanitize import clean_text
from app.store import ChatStore, ComparisonStore, StoreError, schema
from app.store.rows import cleaned

RELEASED = Path(__file__).parent / "released"


TEXTS = st.sampled_from(["a\x00b", "\ud800", "c\r\nd", "e"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("fg"), inner), max_leaves=12)


def texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for each in inner for text in texts(each)]


@given(VALUES)
def test_every_text_of_what_is_kept_is_clean_however_deep_and_nothing_else_changes(value):
    kept = json.loads(json.dumps(cleaned(value)))
    assert texts(kept) == [clean_text(text) for text in texts(value)]
    if not texts(value):
        assert kept == value


def test_a_version_2_file_keeps_branches_pins_and_options_and_takes_comparisons(path: Path):
    path.parent.mkdir()
    shutil.copy(RELEASED / "chats-v2.sqlite3", path)
    chats = ChatStore(path)
    (chat,) = chats.chats()
    assert (chat.title, chat.pinned, chat.folder, chat.options) == ("Lighthouses", True, "Work", {"temperature": 0.7})
    assert {message.content for message in chats.messages(chat.id)} >= {"Tell me about lighthouses", "They warn ships."}
    assert chats.setting("settings")["mode"] == "compare"
    history = ComparisonStore(chats)
    assert history.ids() == [] and history.record(1) is None
    kept = history.add({"at": 5.0, "prompt": "Why? 虹"})
    chats.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(schema.MIGRATIONS)
    again = ChatStore(path)
    assert ComparisonStore(again).record(kept) == {"at": 5.0, "prompt": "Why? 虹"}
    again.close()


def test_a_full_disk_is_told_and_changes_nothing(path: Path):
    chats = ChatStore(path)
    history = ComparisonStore(chats)
    history.add({"at": 1.0})
    pages = chats._db.execute("PRAGMA page_count").fetchone()[0]
    chats._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        history.add({"at": 2.0, "text": "x" * 1_000_000})
    assert [history.record(each) for each in history.ids()] == [{"at": 1.0}]
    chats.close()
