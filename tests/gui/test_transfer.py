"""Chats to files and back through the window: nothing is half written, half taken in, or different afterwards."""

from __future__ import annotations

import json
import zipfile

import pytest
from PySide6.QtCore import QMimeData, QModelIndex, Qt, QTimer, QUrl
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox

from app.core.chat import Attachment
from app.services import transfer as transfer_module
from app.ui.opening import open_url
from tests.gui.conftest import wait_ready

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")


def wait_over(qtbot, window) -> None:
    qtbot.waitUntil(lambda: not window.services.transfer.running, timeout=20_000)


@pytest.fixture
def rich(window):
    """A chat with branches, an attachment, options, a folder and a pin."""
    store = window.services.store
    chat = store.create_chat("Rich", folder="Work", options={"temperature": 0.5})
    store.pin_chat(chat.id, True)
    first = store.add_message(chat.id, "user", "Question", "sent", attachments=[Attachment("a.py", "x = 1")])
    shown = store.add_message(chat.id, "assistant", "Old answer", "done", {"decode_tok_s": 4.5})
    store.add_message(chat.id, "assistant", "New answer", "stopped", parent=first.id)
    store.set_leaf(chat.id, shown.id)
    window.do.open_chat(chat.id)
    return store.chat(chat.id)


def test_export_import_export_is_the_same(qtbot, window, rich, tmp_path):
    window.do.write_export(tmp_path / "one.slipchat")
    open_url(window, QUrl.fromLocalFile(str(tmp_path / "one.slipchat")))
    wait_over(qtbot, window)
    talk = window.services.conversation
    assert talk.chat.id != rich.id and [m.content for m in talk.messages] == ["Question", "Old answer"]
    window.do.write_export(tmp_path / "two.json")
    assert (tmp_path / "two.json").read_text() == (tmp_path / "one.slipchat").read_text()
    assert "New answer" in (tmp_path / "two.json").read_text() and sorted(tmp_path.glob("*.part")) == []


def test_markdown_holds_the_branch_on_show(qtbot, window, rich, tmp_path):
    window.do.write_export(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text()
    assert "Old answer" in text and "**a.py**" in text and "New answer" not in text


def test_an_export_while_an_answer_is_written_holds_what_is_there(qtbot, window, loader, tmp_path):
    loader.script.rate, loader.script.tokens = 50.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 20), timeout=20_000)
    seen = talk.active.text
    window.do.write_export(tmp_path / "x.json")
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    answer = json.loads((tmp_path / "x.json").read_text())["messages"][-1]
    assert answer["content"].startswith(seen) and answer["state"] == "streaming"
    window.do.import_files([tmp_path / "x.json"])
    assert talk.messages[-1].state == "stopped"


def test_all_chats_travel_in_one_file(qtbot, window, rich, tmp_path, make_services):
    store = window.services.store
    for number in range(300):
        store.add_message(store.create_chat(f"Chat {number}").id, "user", f"text {number}", "sent")
    store.delete_chat(store.create_chat("Deleted").id)
    window.services.transfer.export_all(tmp_path / "all.json")
    wait_over(qtbot, window)
    assert window.banner.text == "301 chats were exported to all.json."
    other = make_services(tmp_path / "other")
    told = []
    other.transfer.told.connect(told.append)
    other.transfer.import_files([tmp_path / "all.json"])
    qtbot.waitUntil(lambda: not other.transfer.running, timeout=20_000)
    assert told[-1] == "301 chats were imported."
    assert [chat.title for chat in other.store.chats()] == [chat.title for chat in store.chats()]
    other.transfer.export_all(tmp_path / "again.json")
    qtbot.waitUntil(lambda: not other.transfer.running, timeout=20_000)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "all.json").read_text()


def test_all_chats_as_markdown_are_a_zip_with_one_file_each(qtbot, window, rich, tmp_path):
    for _ in range(2):
        window.services.store.create_chat("same/name")
    window.services.transfer.export_all(tmp_path / "all.zip")
    wait_over(qtbot, window)
    with zipfile.ZipFile(tmp_path / "all.zip") as file:
        names = file.namelist()
        assert len(names) == len(set(names)) == 3 and "Rich.md" in names and "same name.md" in names
        assert "Old answer" in file.read("Rich.md").decode()


def test_a_file_that_is_no_exported_chat_changes_nothing(qtbot, window, tmp_path):
    path = tmp_path / "x.slipchat"
    path.write_text(json.dumps({"format": "slipstream-chat-1", "title": "", "messages": "abc"}))
    open_url(window, QUrl.fromLocalFile(str(path)))
    assert window.banner.text == "x.slipchat is no chat that Slipstream exported." and window.services.store.chats() == []


def test_half_an_import_leaves_nothing_behind(qtbot, window, rich, tmp_path):
    window.services.transfer.export_all(tmp_path / "all.json")
    wait_over(qtbot, window)
    store = window.services.store
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    whole = json.loads((tmp_path / "all.json").read_text())
    (chat,) = whole["chats"]
    large = {**chat, "messages": [{**chat["messages"][0], "content": "word " * 100_000}], "leaf": None}
    (tmp_path / "all.json").write_text(json.dumps({**whole, "chats": [chat, chat, large]}))
    store._db.execute(f"PRAGMA max_page_count = {pages + 4}")
    window.do.import_files([tmp_path / "all.json"])
    wait_over(qtbot, window)
    assert "disk is full" in window.banner.text
    assert [each.id for each in store.chats()] == [rich.id] and store.deleted_chats() == []
    assert store._db.execute("SELECT count(*) FROM chats").fetchone() == (1,)


def test_an_import_cut_off_by_quitting_leaves_nothing_at_the_next_start(qtbot, make_services, window, rich, tmp_path, monkeypatch):
    window.services.transfer.export_all(tmp_path / "all.json")
    wait_over(qtbot, window)
    whole = json.loads((tmp_path / "all.json").read_text())
    (tmp_path / "all.json").write_text(json.dumps({**whole, "chats": whole["chats"] * 50}))
    other = make_services(tmp_path / "other")
    monkeypatch.setattr(transfer_module, "SLICE_S", 1e-6)
    other.transfer.import_files([tmp_path / "all.json"])
    assert other.transfer.running and other.store.chats() == []
    monkeypatch.setattr(other.store, "purge_chats", lambda ids: None)  # as if killed
    other.shutdown()
    again = make_services(tmp_path / "other")
    assert again.store.chats() == again.store.deleted_chats() == []
    assert again.store._db.execute("SELECT count(*) FROM messages").fetchone() == (0,)


def test_an_export_that_cannot_be_written_leaves_the_old_file(qtbot, window, rich, tmp_path, monkeypatch):
    (tmp_path / "x.json").write_text("before")

    def fail(*_anything):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transfer_module, "chats_json", fail)
    window.services.transfer.export_all(tmp_path / "x.json")
    assert "(the disk is full)" in window.banner.text and (tmp_path / "x.json").read_text() == "before"
    assert list(tmp_path.glob("*.part")) == []
    window.services.transfer.export_all(tmp_path / "no" / "x.json")
    assert "(it is not there)" in window.banner.text


def test_files_dropped_on_the_list_are_imported_and_others_are_not(qtbot, window, rich, tmp_path):
    window.do.write_export(tmp_path / "x.json")
    rows = window.sidebar.chats.rows
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "x.json"))])
    assert rows.canDropMimeData(data, Qt.DropAction.CopyAction, -1, -1, QModelIndex())
    assert rows.dropMimeData(data, Qt.DropAction.CopyAction, -1, -1, QModelIndex())
    wait_over(qtbot, window)
    assert len(window.services.store.chats()) == 2
    foreign = QMimeData()
    foreign.setUrls([QUrl("https://example.org/x.json"), QUrl.fromLocalFile(str(tmp_path / "x.png"))])
    assert not rows.canDropMimeData(foreign, Qt.DropAction.CopyAction, -1, -1, QModelIndex())


@pytest.mark.parametrize("words", [20_000, 2])
def test_several_files_are_all_taken_in_and_a_damaged_one_is_named(qtbot, window, tmp_path, words):
    store = window.services.store
    for number in range(3):
        chat = store.create_chat(f"Chat {number}")
        for _ in range(30):
            store.add_message(chat.id, "user", "word " * words, "sent")
        window.services.transfer.export_chat(chat, tmp_path / f"{number}.slipchat")
        wait_over(qtbot, window)
    (tmp_path / "damaged.slipchat").write_text("{")
    before = len(store.chats())
    window.do.import_files([tmp_path / name for name in ("0.slipchat", "damaged.slipchat", "1.slipchat", "2.slipchat")])
    wait_over(qtbot, window)
    assert len(store.chats()) == before + 3
    assert window.banner.text == "3 chats were imported. damaged.slipchat is no chat that Slipstream exported."


def test_figures_of_an_imported_answer_that_are_none_are_left_out(qtbot, window, rich, tmp_path):
    path = tmp_path / "x.slipchat"
    window.do.write_export(path)
    whole = json.loads(path.read_text())
    answer = next(turn for turn in whole["messages"] if turn["statistics"])
    answer["statistics"] = {
        "completion_tokens": 9, "decode_tok_s": 4.5, "mode": ["x"], "ttft_s": "soon", "acceptance_rate": {}, "cached_tokens": [1],
        "thinking_s": float("inf"), "seed": float("nan"), "finish_reason": 3, "kept_tokens": "all", "cache": 5,
    }  # fmt: skip
    path.write_text(json.dumps(whole))
    window.do.import_files([path])
    wait_over(qtbot, window)
    talk, shown = window.services.conversation, window.transcript.answers[-1]
    assert talk.chat.id != rich.id and shown.statistics_text == "4.5\u00a0tok/s"
    assert talk.messages[-1].statistics == {"completion_tokens": 9, "decode_tok_s": 4.5}


def test_a_transfer_that_fails_for_a_fault_of_ours_ends(qtbot, window, rich, tmp_path, monkeypatch):
    def fail(*_arguments):
        raise TypeError("ours")

    monkeypatch.setattr(transfer_module, "chat_markdown", fail)
    with pytest.raises(TypeError):
        window.do.write_export(tmp_path / "x.md")
    assert not window.services.transfer.running and list(tmp_path.glob("x.md*")) == []
    window.do.write_export(tmp_path / "x.json")
    assert (tmp_path / "x.json").exists() and window.banner.text == "1 chat was exported to x.json."


def test_times_and_options_of_an_imported_chat_that_cannot_be_are_put_right(qtbot, window, rich, tmp_path):
    path = tmp_path / "x.slipchat"
    window.do.write_export(path)
    options = {"system": 5, "temperature": 1e9, "top_k": "many", "unknown": {}}
    strange = {"updated_at": "0001-01-01T00:00:00+00:00", "created_at": "9999-12-31T23:59:59+00:00", "options": options}
    path.write_text(json.dumps({**json.loads(path.read_text()), **strange}))
    window.do.import_files([path])
    wait_over(qtbot, window)
    chat = window.services.conversation.chat
    assert chat.id != rich.id and len(window.sidebar.chats.chat_ids()) == 2
    assert chat.options == {"system": "5", "temperature": 2.0, "top_k": 0}
    for words in ("1 chat was imported. In “", "option “temperature” cannot be", "option “top_k” cannot be 'many'"):
        assert words in window.banner.text
    for name in ("x.md", "x.json"):
        window.do.write_export(tmp_path / name)
        assert (tmp_path / name).exists()


@pytest.mark.parametrize("button", [QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.Cancel])
def test_a_file_that_only_the_added_ending_names_is_replaced_after_a_question(qtbot, window, rich, tmp_path, monkeypatch, button):
    there = tmp_path / "notes.md"
    there.write_text("precious")
    typed = str(tmp_path / "notes")  # about which the system's dialog has nothing to ask
    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(lambda *_arguments: (typed, "Markdown (*.md)")))

    def answer():
        box = QApplication.activeModalWidget()
        asked.append(box.text())
        box.button(button).click()

    asked: list[str] = []
    QTimer.singleShot(0, answer)
    window.do.export_chat()
    wait_over(qtbot, window)
    assert len(asked) == 1 and "notes.md" in asked[0]
    assert (there.read_text() == "precious") is (button == QMessageBox.StandardButton.Cancel)


def test_choosing_no_file_to_import_says_nothing(qtbot, window, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_arguments: ([], "")))
    window.do.import_chats()
    assert window.banner.text == "" and not window.services.transfer.running


@pytest.fixture
def large(tmp_path):
    """A file with one chat of 600 messages and 6 MB, and the same chat in a file of all chats."""
    begun = "2026-03-05T12:00:00+00:00"
    turns = [
        {
            "id": number, "parent": number - 1 or None, "role": "user", "content": f"{number} " + "word " * 2_000, "state": "sent",
            "created_at": begun, "statistics": None, "attachments": [],
        }
        for number in range(1, 601)
    ]  # fmt: skip
    chat = {"title": "Large", "created_at": begun, "updated_at": begun, "pinned": False, "folder": "", "options": {}}
    path = tmp_path / "large.slipchat"
    path.write_text(json.dumps({"format": "slipstream-chat-2", **chat, "leaf": 600, "messages": turns}))
    return path


def test_a_large_file_is_taken_in_by_many_steps_that_say_how_far_they_are(qtbot, window, large, monkeypatch):
    lines, turns = [], []
    window.services.transfer.progressed.connect(lines.append)
    beat = QTimer(window, interval=0)
    beat.timeout.connect(lambda: turns.append(len(window.services.store.chats())))
    beat.start()
    monkeypatch.setattr(transfer_module, "SLICE_S", 0.0005)
    window.do.import_files([large])
    qtbot.waitUntil(lambda: not window.services.transfer.running, timeout=60_000)
    beat.stop()
    assert len(turns) > 100 and set(turns[:-2]) == {0}, "nothing of it is listed before all of it is there"
    assert any(line.startswith("Reading large.slipchat: ") for line in lines)
    shares = [int(line.split()[-2]) for line in lines if line.startswith("Importing large.slipchat: ")]
    assert len(shares) > 10 and shares == sorted(shares) and shares[-1] == 100
    assert window.title.text() == "Large" and window.banner.text == "", "how far it is goes when it is over"
    messages = window.services.store.messages(window.services.store.chats()[0].id)
    assert len(messages) == 600 and messages[-1].content.startswith("600 word") and messages[-1].parent_id == messages[-2].id


@pytest.mark.parametrize("stage", ["Reading", "Importing"])
def test_an_import_can_be_cancelled_and_leaves_nothing(qtbot, window, large, monkeypatch, stage):
    monkeypatch.setattr(transfer_module, "SLICE_S", 0.0005)
    window.do.import_files([large])
    qtbot.waitUntil(lambda: window.banner.text.startswith(stage), timeout=20_000)
    assert window.banner.action.text() == "Cancel"
    window.banner.action.click()
    monkeypatch.setattr(transfer_module, "SLICE_S", 0.02)
    qtbot.waitUntil(lambda: not window.services.transfer.running, timeout=20_000)
    assert window.banner.text == "Cancelled: nothing was changed."
    db = window.services.store._db
    assert db.execute("SELECT count(*) FROM chats").fetchone() == db.execute("SELECT count(*) FROM messages").fetchone() == (0,)
    window.do.import_files([large])
    qtbot.waitUntil(lambda: not window.services.transfer.running, timeout=60_000)
    assert [chat.title for chat in window.services.store.chats()] == ["Large"]


def test_cancelling_keeps_the_files_that_were_taken_in_whole(qtbot, window, rich, large, tmp_path, monkeypatch):
    window.do.write_export(tmp_path / "small.slipchat")
    wait_over(qtbot, window)
    monkeypatch.setattr(transfer_module, "SLICE_S", 0.0005)
    window.do.import_files([tmp_path / "small.slipchat", large, large])
    qtbot.waitUntil(lambda: window.banner.text.startswith("Importing large"), timeout=20_000)
    window.banner.action.click()
    monkeypatch.setattr(transfer_module, "SLICE_S", 0.02)
    wait_over(qtbot, window)
    assert window.banner.text == "1 chat was imported. The rest was cancelled."
    assert [chat.title for chat in window.services.store.chats()] == ["Rich", "Rich"]
