"""Real processes: killed in the middle of an answer, and two at once on one file. Nothing committed is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from app.store import ChatStore

STREAM = """
import sys
from pathlib import Path
from app.store import ChatStore
store = ChatStore(Path(sys.argv[1]))
chat = store.create_chat("a")
store.add_message(chat.id, "user", "question", "sent")
answer = store.add_message(chat.id, "assistant", "", "streaming")
text = ""
while True:
    text += "word "
    store.update_message(answer.id, text)
    print(len(text), flush=True)
"""

WRITE = """
import sys
from pathlib import Path
from app.store import ChatStore
store = ChatStore(Path(sys.argv[1]))
chat = store.create_chat(sys.argv[2])
for i in range(100):
    message = store.add_message(chat.id, "assistant", "", "streaming")
    store.update_message(message.id, f"{sys.argv[2]} {i}", "done")
    store.set_setting("last " + sys.argv[2], i)
store.close()
"""


def test_a_program_killed_in_the_middle_of_an_answer_loses_nothing_it_had_written(path: Path):
    process = subprocess.Popen([sys.executable, "-c", STREAM, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if int(line) >= 2000:
                break
        process.send_signal(signal.SIGKILL)
        written = max([int(line), *map(int, process.stdout.read().split("\n")[:-1])])
    assert process.wait(30) == -signal.SIGKILL
    store = ChatStore(path)
    assert store.moved_aside is None
    assert store.recover() == 1
    question, answer = store.messages(store.chats()[0].id)
    assert question.content == "question"
    assert answer.state == "interrupted"
    # One more step may have been committed than was told.
    assert answer.content in ("word " * (written // 5), "word " * (written // 5 + 1))
    assert store.search("word")[0].message_id == answer.id
    store.close()


def test_two_programs_that_make_and_write_one_file_at_once_lose_nothing(path: Path):
    names = ("one", "two", "three")
    processes = [subprocess.Popen([sys.executable, "-c", WRITE, path, name]) for name in names]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    store = ChatStore(path)
    chats = {chat.title: chat.id for chat in store.chats()}
    assert sorted(chats) == sorted(names)
    for name in names:
        assert [(m.content, m.state) for m in store.messages(chats[name])] == [(f"{name} {i}", "done") for i in range(100)]
        assert store.setting(f"last {name}") == 99
    assert len(store.search("one")) == 1
    store.close()


def test_an_answer_marked_interrupted_by_a_second_program_is_finished_by_its_own(store: ChatStore, path: Path):
    chat = store.create_chat("a")
    answer = store.add_message(chat.id, "assistant", "half", "streaming")
    second = ChatStore(path)
    assert second.recover() == 1
    second.close()
    assert store.update_message(answer.id, "half and whole", "done")
    assert [(m.content, m.state) for m in store.messages(chat.id)] == [("half and whole", "done")]


def test_commits_do_not_wait_for_the_disk_and_keep_the_file_sound(store: ChatStore):
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (1,)  # NORMAL: no flush at a commit
    assert store._db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert not store._db.in_transaction
