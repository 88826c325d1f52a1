"""Files of every released version open with all they held; a backup comes first, and being killed on the way costs nothing."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.store import ChatStore, schema

RELEASED = Path(__file__).parent / "released"
KILLED = """
import os, signal, sys
from pathlib import Path
from app.store import ChatStore, connection, schema, search

def die(*_anything):
    os.kill(os.getpid(), signal.SIGKILL)

moment = sys.argv[2]
if moment == "backing up":
    Path.replace = die
elif moment == "at the first step":
    schema.MIGRATIONS[1] = die
elif moment == "after the last step":
    schema.MIGRATIONS.append(die)
else:
    connection.prepare_index = lambda db: (search.prepare_index(db), die())
ChatStore(Path(sys.argv[1]))
"""


@pytest.fixture
def old(path: Path) -> Path:
    """A file as version 1 left it."""
    path.parent.mkdir()
    shutil.copy(RELEASED / "chats-v1.sqlite3", path)
    return path


def check_whole(store: ChatStore) -> None:
    """Raises unless everything that the version 1 file held is there."""
    chats = {chat.title: chat for chat in store.chats()}
    assert [chat.title for chat in store.chats()] == ["Code", "Rainbows 虹", "Empty chat"]
    rainbows = store.messages(chats["Rainbows 虹"].id)
    assert [(m.role, m.content, m.state) for m in rainbows] == [
        ("user", "Explain rainbows 虹の色 👩\u200d👩\u200d👧", "sent"),
        ("assistant", "Sunlight in a **drop**.", "done"),
        ("assistant", "Sunlight, once more.", "stopped"),
        ("user", "And at night?", "sent"),
        ("assistant", "", "failed"),
    ]
    assert rainbows[1].statistics == {"mode": "dflash", "decode_tok_s": 41.25, "completion_tokens": 7, "fallback": None}
    assert [m.parent_id for m in rainbows] == [None, *(m.id for m in rainbows[:-1])]
    assert chats["Rainbows 虹"].leaf_id == rainbows[-1].id and chats["Empty chat"].leaf_id is None
    assert not any(chat.pinned or chat.folder or chat.options for chat in chats.values())
    assert [hit.chat.title for hit in store.search("虹の")] == ["Rainbows 虹"]
    assert [hit.chat.title for hit in store.search("print")] == ["Code"]
    store._db.execute("INSERT INTO message_index(message_index, rank) VALUES ('integrity-check', 1)")
    assert store.setting("settings") == {"temperature": 0.5, "mode": "compare", "pair": "starter"}
    assert store.setting(f"draft:{chats['Rainbows 虹'].id}") == "half a thought"


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def test_every_released_version_is_kept_here():
    kept = sorted(int(file.stem.removeprefix("chats-v")) for file in RELEASED.glob("chats-v*.sqlite3"))
    assert kept == list(range(1, len(schema.MIGRATIONS)))


def test_a_version_1_file_opens_with_all_it_held_each_chat_one_chain(old: Path):
    store = ChatStore(old)
    check_whole(store)
    assert store.recover() == 1  # the answer that was being written when version 1 ended
    assert store.moved_aside is None
    store.close()


def rows_of(path: Path, columns: dict[str, str]) -> dict[str, list[tuple]]:
    with closing(sqlite3.connect(path)) as db:
        return {table: db.execute(f"SELECT {names} FROM {table} ORDER BY 1").fetchall() for table, names in columns.items()}


@pytest.mark.parametrize("released", sorted(RELEASED.glob("*.sqlite3")), ids=lambda file: file.stem)
def test_every_row_and_column_of_a_released_version_is_there_afterwards(path: Path, released: Path):
    path.parent.mkdir()
    shutil.copy(released, path)
    with closing(sqlite3.connect(released)) as db:
        tables = [
            row[0]
            for row in db.execute(
                "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%' AND name NOT LIKE '%\\_%' ESCAPE '\\'"
            )
        ]
        columns = {table: ", ".join(row[1] for row in db.execute(f"PRAGMA table_info({table})")) for table in tables}
    assert {"chats", "messages", "settings"} <= columns.keys()
    before = rows_of(path, columns)
    ChatStore(path).close()
    assert rows_of(path, columns) == before and len(before["messages"]) > 2


def test_the_file_as_it_was_is_kept_beside_it(old: Path):
    before = old.read_bytes()
    ChatStore(old).close()
    backup = old.with_name(f"{old.name}.backup-v1")
    assert version_of(backup) == 1 and version_of(old) == len(schema.MIGRATIONS)
    with closing(sqlite3.connect(backup)) as db, closing(sqlite3.connect(RELEASED / "chats-v1.sqlite3")) as first:
        assert list(db.iterdump()) == list(first.iterdump())
    assert (RELEASED / "chats-v1.sqlite3").read_bytes() == before


@pytest.mark.parametrize("moment", ["backing up", "at the first step", "after the last step", "at the end"])
def test_being_killed_while_an_old_file_is_brought_up_to_date_costs_nothing(old: Path, moment: str):
    killed = subprocess.run([sys.executable, "-c", KILLED, old, moment], capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert version_of(old) == 1
    store = ChatStore(old)
    check_whole(store)
    store.close()
    backup = ChatStore(old.with_name(f"{old.name}.backup-v1"))
    check_whole(backup)
    backup.close()
    assert not list(old.parent.glob("*.part"))
