"""Bad days: damage, full disks, folders without permission, newer files. Each is one clear line and loses nothing."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.core.chat import Attachment
from app.core.tree import ChatTree
from app.store import ChatStore, StoreError, schema
from app.store.connection import transaction
from app.store.salvage import salvage

NOBODY = 65534


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    text = str(error.value)
    assert "\n" not in text and text.endswith(".")
    return text


@contextmanager
def without_root() -> Iterator[None]:
    """Root may write anywhere: be someone else for the file system."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that others may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def write_chats(path: Path, count: int = 50) -> None:
    store = ChatStore(path)
    chat = store.create_chat("kept")
    for i in range(count):
        store.add_message(chat.id, "user", f"message {i} " * 50, "sent")
    store.close()


DAMAGES = ("header", "middle", "text file", "cut off", "empty pages")


def damage(path: Path, kind: str) -> bytes:
    """Breaks the file; what it holds then."""
    content = bytearray(path.read_bytes())
    if kind == "header":
        content[:100] = bytes(100)
    elif kind == "middle":
        content[len(content) // 2 : len(content) // 2 + 16384] = b"\xff" * 16384
    elif kind == "text file":
        content = bytearray(b"these are not the chats " * 500)
    elif kind == "cut off":
        del content[len(content) // 2 :]
    else:
        for page in range(8, len(content) // 4096, 16):
            content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(content)
    return bytes(content)


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_set_aside_unchanged_and_what_can_be_read_is_saved(path: Path, kind: str):
    write_chats(path, 400)
    content = damage(path, kind)
    store = ChatStore(path)
    assert store.moved_aside is not None and store.moved_aside.parent == path.parent
    assert store.moved_aside.read_bytes() == content
    whole = [f"message {i} " * 50 for i in range(400)]
    saved = [message.content for chat in store.chats() for message in store.messages(chat.id)]
    if kind in ("header", "text file"):
        assert store.saved_chats == 0 and saved == []
    else:
        assert store.saved_chats == 1 and set(saved) <= set(whole) and len(saved) > (150 if kind == "cut off" else 350)
        (chat,) = store.chats()
        assert [m.id for m in ChatTree(store.messages(chat.id)).path(None)] == [m.id for m in store.messages(chat.id)]
        assert [hit.chat.id for hit in store.search("message")] == [chat.id]
    chat = store.create_chat("new")
    store.add_message(chat.id, "user", "goes on", "sent")
    store.close()
    again = ChatStore(path)
    assert again.chats()[0].title == "new" and again.moved_aside is None
    assert len(again.chats()) == again.saved_chats + 1 + (len(saved) > 0)
    again.close()


def test_a_chat_whose_own_row_is_lost_is_made_anew_from_its_messages(path: Path):
    write_chats(path, 3)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM chats")
        db.execute("UPDATE messages SET parent_id = NULL WHERE id = 2")
        db.commit()
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(path.with_name("new"), isolation_level=None)) as new:
        for step in schema.MIGRATIONS:
            step(new)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert salvage(path, new) == 1
        assert new.execute("SELECT title FROM chats").fetchall() == [("message 0 message 0 message 0 message 0…",)]
        assert new.execute("SELECT id, parent_id FROM messages").fetchall() == [(1, None), (2, 1), (3, 2)]


def test_everything_in_a_readable_file_is_saved(path: Path):
    """A branch, an attachment, options, a folder, a deleted chat and settings, from a file with nothing but a broken index."""
    store = ChatStore(path)
    chat = store.create_chat("kept", folder="Work", options={"temperature": 0.5})
    first = store.add_message(chat.id, "user", "question", "sent", attachments=[Attachment("a.py", "x")])
    shown = store.add_message(chat.id, "assistant", "one", "done", {"cycles": 1})
    store.add_message(chat.id, "assistant", "two", "streaming", parent=first.id)
    store.set_leaf(chat.id, shown.id)
    store.delete_chat(store.create_chat("deleted").id)
    store.set_setting("draft", {"text": "half"})
    chats, messages, deleted = store.chats(), store.messages(chat.id), store.deleted_chats()
    (root,) = store._db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'message_index_data'").fetchone()
    store.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    again = ChatStore(path)
    assert again.saved_chats == 1
    assert (again.chats(), again.messages(chat.id), again.deleted_chats()) == (chats, messages, deleted)
    assert again.setting("draft") == {"text": "half"} and len(again.search("one")) == 1
    again.close()


def test_no_room_to_save_what_is_readable_still_sets_the_file_aside(path: Path, monkeypatch: pytest.MonkeyPatch):
    write_chats(path, 50)
    content = damage(path, "middle")

    def full(*_anything: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    store = ChatStore(path)
    assert store.saved_chats == 0 and store.chats() == []
    assert store.moved_aside is not None and store.moved_aside.read_bytes() == content
    store.close()


def test_two_damaged_files_are_both_kept(path: Path):
    path.parent.mkdir()
    kept = set()
    for _ in range(3):
        path.write_bytes(b"not chats at all " * 100)
        store = ChatStore(path)
        kept.add(store.moved_aside)
        store.close()
    assert len(kept) == 3 and all(file.exists() for file in kept)


def test_a_full_disk_is_one_clear_line_and_what_was_kept_stays(store: ChatStore):
    chat = store.create_chat("a")
    answer = store.add_message(chat.id, "assistant", "so far", "streaming")
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError) as error:
        store.update_message(answer.id, "x" * 100_000)
    assert "disk is full" in one_line(error)
    with pytest.raises(StoreError):
        store.add_message(chat.id, "user", "y" * 100_000, "sent")
    assert [message.content for message in store.messages(chat.id)] == ["so far"]
    store._db.execute("PRAGMA max_page_count = 100000")
    assert store.update_message(answer.id, "x" * 100_000, "done")
    assert len(store.messages(chat.id)[0].content) == 100_000


def test_opening_an_up_to_date_file_writes_nothing_so_that_a_full_disk_does_not_hide_the_chats(path: Path):
    write_chats(path, 1)
    before = path.read_bytes()
    store = ChatStore(path)
    assert path.with_name("chats.db-wal").stat().st_size == 0
    assert [chat.title for chat in store.chats()] == ["kept"]
    store.close()
    assert path.read_bytes() == before


def test_a_disk_that_refuses_a_write_is_one_clear_line_and_the_store_goes_on(path: Path):
    script = """
import resource, sys
from pathlib import Path
from app.store import ChatStore, StoreError
store = ChatStore(Path(sys.argv[1]))
chat = store.create_chat("a")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
try:
    store.add_message(chat.id, "user", "x" * 1_000_000, "sent")
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.add_message(chat.id, "user", "after", "sent")
print([message.content for message in store.messages(chat.id)])
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=60, check=True)
    message, kept = done.stdout.splitlines()
    assert "does not take what is written" in message
    assert kept == "['after']"


@pytest.mark.parametrize("existing", [True, False])
def test_a_read_only_folder_is_one_clear_line(readable_folder: Path, existing: bool):
    path = readable_folder / "data" / "chats.db"
    if existing:
        write_chats(path, 3)
        path.chmod(0o444)
    path.parent.mkdir(exist_ok=True)
    path.parent.chmod(0o555)
    with without_root(), pytest.raises(StoreError) as error:
        ChatStore(path)
    assert "writable" in one_line(error)
    path.parent.chmod(0o755)
    if existing:
        path.chmod(0o644)
        store = ChatStore(path)
        assert len(store.messages(store.chats()[0].id)) == 3
        store.close()


def test_a_folder_that_cannot_be_made_is_one_clear_line(readable_folder: Path):
    (readable_folder / "file").write_text("in the way")
    with pytest.raises(StoreError) as error:
        ChatStore(readable_folder / "file" / "chats.db")
    assert "folder" in one_line(error)
    readable_folder.chmod(0o555)
    with without_root(), pytest.raises(StoreError) as error:
        ChatStore(readable_folder / "new" / "chats.db")
    assert "writable" in one_line(error)


def test_a_file_of_a_newer_program_is_refused_and_not_touched(path: Path):
    write_chats(path, 2)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError) as error:
        ChatStore(path)
    assert "newer" in one_line(error)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (2,)
        assert db.execute("PRAGMA user_version").fetchone() == (99,)
    assert [file.name for file in path.parent.iterdir() if "damaged" in file.name or "backup" in file.name] == []


def test_a_step_that_fails_leaves_the_file_at_its_version(path: Path, monkeypatch: pytest.MonkeyPatch):
    write_chats(path, 2)

    def half(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE chats ADD COLUMN colour INTEGER")
        db.execute("SELECT no_such_column FROM chats")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, half])
        with pytest.raises(StoreError):
            ChatStore(path)
    store = ChatStore(path)
    assert "colour" not in [row[1] for row in store._db.execute("PRAGMA table_info(chats)")]
    assert [chat.title for chat in store.chats()] == ["kept"]
    store.close()


def test_a_new_file_needs_no_backup(store: ChatStore, path: Path):
    assert not [file for file in path.parent.iterdir() if "backup" in file.name]


def test_a_write_waits_for_another_one_and_gives_up_with_a_clear_line(
    store: ChatStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store._db.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(StoreError) as error:
        store.create_chat("a")
    assert "another program" in one_line(error)
    assert store.chats() == []
    other.execute("COMMIT")
    other.close()
    store.create_chat("a")


def test_an_interruption_inside_a_write_undoes_it(store: ChatStore):
    with pytest.raises(KeyboardInterrupt), transaction(store._db):
        store._db.execute("INSERT INTO chats (title, created_at, updated_at) VALUES ('half', 0, 0)")
        raise KeyboardInterrupt
    assert store.chats() == []
    store.create_chat("works")
