"""Files that go with a message: by button, drop and paste; on chips with their tokens; sent, shown and kept."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QInputMethodEvent
from PySide6.QtWidgets import QApplication, QFileDialog

from app.core.attachments import HUGE_LINES
from app.core.chat import Attachment
from app.ui.message_editor import MessageEditor
from tests.gui.conftest import load, wait_ready
from tests.gui.test_window import paste, write


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "poem.txt"
    path.write_text("Roses are red,\nviolets are blue.\n", encoding="utf-8")
    return path


def mime(*paths) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def drop(widget, path) -> None:
    """Drags a file over a widget and lets it go."""
    data, middle = mime(path), QPointF(20, 10)
    enter = QDragEnterEvent(middle.toPoint(), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
                            Qt.KeyboardModifier.NoModifier)  # fmt: skip
    QApplication.sendEvent(widget, enter)
    assert enter.isAccepted()
    drop = QDropEvent(middle, Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget, drop)


def names(window) -> list[str]:
    return [each.name for each in window.composer.attachments]


def test_the_button_attaches_files_and_says_which_it_cannot(qtbot, window, file, tmp_path, monkeypatch):
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\x00\x01")
    chosen = [str(file), str(tmp_path / "photo.jpg")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_arguments: (chosen, "")))
    qtbot.mouseClick(window.composer.attach, Qt.MouseButton.LeftButton)
    assert names(window) == ["poem.txt"] and "photo.jpg cannot be attached" in window.banner.text
    assert window.composer.button.isEnabled()


@pytest.mark.parametrize("target", ["window", "editor", "answer", "instructions"])
def test_files_can_be_dropped_on_the_window_the_editor_the_chat_and_its_options(qtbot, window, file, target):
    write(qtbot, window, "Why?")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    answer = window.transcript.answers[-1].body.widgets[0]
    window.do.toggle_options()
    instructions = window.options.panel.system
    targets = {"window": window, "editor": window.composer.edit.viewport(), "answer": answer.viewport(),
               "instructions": instructions.viewport()}  # fmt: skip
    drop(targets[target], file)
    assert names(window) == ["poem.txt"] and window.composer.text() == instructions.toPlainText() == ""


def test_files_can_be_pasted(qtbot, window, file):
    window.composer.edit.insertFromMimeData(mime(file))
    assert names(window) == ["poem.txt"]


def test_a_message_goes_with_its_files_and_shows_them(qtbot, window, file, loader):
    window.writing.add_files([file])
    write(qtbot, window, "Sum up")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    assert not window.composer.has_content and window.composer.chips.isHidden()
    asked = loader.engines[-1].requests[-1].messages[-1].content
    assert "poem.txt" in asked and "violets are blue" in asked and asked.endswith("Sum up")
    sent = window.transcript._mounted[window.services.conversation.messages[0].id]
    (button,) = sent.attachments.buttons
    assert "poem.txt" in button.text() and sent.text_widgets()[0].toPlainText() == "Sum up"
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert "violets" in sent.attachments._files[0].text.toPlainText()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert sent.attachments._files[0].text is None


def test_a_message_may_be_nothing_but_a_file(qtbot, window, file):
    window.writing.add_files([file])
    qtbot.mouseClick(window.composer.button, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.title.text() == "poem.txt" and window.services.conversation.messages[-1].state == "done"


def test_a_chip_is_removed_by_mouse_and_by_keyboard_and_the_focus_stays_near(qtbot, window):
    for name in ("a.txt", "b.txt", "c.txt"):
        window.composer.add(Attachment(name, "text"))
    chips = window.composer.chips
    window.activateWindow()
    chips.chips[1].setFocus()
    qtbot.waitUntil(lambda: chips.chips[1].hasFocus(), timeout=20_000)
    qtbot.keyClick(chips.chips[1], Qt.Key.Key_Delete)
    assert names(window) == ["a.txt", "c.txt"] and chips.chips[1].hasFocus()
    qtbot.keyClick(chips.chips[1], Qt.Key.Key_Backspace)
    qtbot.mouseClick(chips.chips[0]._remove, Qt.MouseButton.LeftButton)
    assert names(window) == [] and chips.isHidden() and not window.composer.button.isEnabled()


def test_a_huge_paste_becomes_an_attachment_and_undo_brings_it_into_the_message(qtbot, window):
    text = "line\n" * HUGE_LINES
    write(qtbot, window, "Look: ")
    paste(window, text)
    assert window.composer.text() == "Look: " and [each.text for each in window.composer.attachments] == [text]
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.composer.text() == "Look: " + text and names(window) == []
    paste(window, text)
    write(qtbot, window, "more")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert len(names(window)) == 1, "what was typed after it is undone first"


def test_undo_takes_back_the_files_of_the_last_paste_and_nothing_else(qtbot, window, file, tmp_path):
    window.composer.add(Attachment("kept.txt", "kept"))

    def undo() -> list[str]:
        qtbot.keyClick(window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        assert window.composer.text() == "", "a file's text was never in the field"
        return names(window)

    window.composer.edit.insertFromMimeData(mime(file, file))
    assert len(names(window)) == 3 and undo() == ["kept.txt"]
    window.composer.edit.insertFromMimeData(mime(file))
    window.composer.chips.remove(window.composer.chips.chips[-1])
    assert undo() == ["kept.txt"]
    window.composer.edit.insertFromMimeData(mime(tmp_path))  # a folder, which is refused
    assert undo() == ["kept.txt"]


def test_files_stay_with_the_draft_of_their_chat(qtbot, window, file, make_services, make_window):
    write(qtbot, window, "First")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.chat.id
    window.writing.add_files([file])
    write(qtbot, window, "and this")
    window.do.new_chat()
    assert not window.composer.has_content
    window.do.open_chat(first)
    assert names(window) == ["poem.txt"] and window.composer.text() == "and this"


def test_too_much_for_one_message_is_refused_and_keeps_what_is_there(window):
    window.composer.add(Attachment("a.txt", "x" * 900_000))
    assert not window.composer.add(Attachment("b.txt", "x" * 200_000))
    assert names(window) == ["a.txt"] and "b.txt was not added" in window.banner.text


def test_tokens_are_counted_before_sending_file_by_file(qtbot, window):
    window.composer.add(Attachment("a.txt", "one two three"))
    write(qtbot, window, "four five")
    chip = window.composer.chips.chips[0]
    qtbot.waitUntil(lambda: "token" in chip.figure, timeout=20_000)
    qtbot.waitUntil(lambda: "This message" in window.composer.context.toolTip(), timeout=20_000)
    client, asked = window.services.client, []
    client.counted.connect(asked.append)
    window.writing.count()
    qtbot.waitUntil(lambda: bool(asked), timeout=20_000)
    assert window.composer.context.text() == f"{asked[0]} of 8,192 tokens"


@pytest.mark.qt_log_ignore("This plugin does not support (raise|grabbing)")
def test_the_context_meter_has_three_states_and_names_its_parts(qtbot, window, loader):
    loader.script.context_length = 100
    load(qtbot, window.services.client)
    meter, options = window.composer.context, window.services.conversation.options
    options.set(options.current.with_values({"system": "Be very brief indeed."}))
    for words, fill in ((10, "fits"), (84, "nearly full"), (120, "too long")):
        window.composer.set_text("word " * words)
        qtbot.waitUntil(lambda fill=fill: meter.fill == fill, timeout=20_000)
    assert "shorten the message" in meter.toolTip() and "Instructions: " in meter.toolTip()
    options.set(options.current.with_values({"drop_oldest": True}))
    qtbot.waitUntil(lambda: "oldest turns will be left out" in meter.toolTip(), timeout=20_000)
    meter.setFocus()
    qtbot.keyClick(meter, Qt.Key.Key_Space)
    popup = QApplication.activePopupWidget()
    rows = dict(popup.rows)
    assert rows["Context of the model"] == "100" and rows["Left for the answer"] == "0"
    assert int(rows["Instructions"]) + int(rows["This message"]) == int(rows["Together"])
    qtbot.keyClick(popup, Qt.Key.Key_Escape)
    assert QApplication.activePopupWidget() is None


def test_a_template_that_refuses_a_part_still_leaves_the_sum(qtbot, window, monkeypatch, loader):
    from engine import ModelError

    engine = loader.engines[-1]
    count = engine.count_tokens

    def picky(messages):
        if messages[-1].content == "x":
            raise ModelError("roles must alternate")
        return count(messages)

    qtbot.waitUntil(lambda: bool(window.writing._known), timeout=20_000)  # what was on its way is there
    monkeypatch.setattr(engine, "count_tokens", picky)
    window.writing._known.clear()
    window.composer.set_text("one two")
    qtbot.waitUntil(lambda: window.composer.context.text().startswith("6 of"), timeout=20_000)
    assert "This message" not in window.composer.context.toolTip()


def test_a_long_paste_into_an_edited_message_is_not_lost(qtbot, window):
    write(qtbot, window, "First")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    window.do.edit_message()
    editor = window.findChild(MessageEditor)
    data = QMimeData()
    data.setText("line\n" * HUGE_LINES)
    editor.edit.insertFromMimeData(data)
    assert editor.text == "First" + "line\n" * HUGE_LINES
    data.setText("y" * 5_000)
    editor.edit.insertFromMimeData(data)
    assert "too long" in editor.note.text() and "y" not in editor.text


def test_a_file_dropped_on_an_edited_message_is_refused_with_the_reason(qtbot, window, file):
    write(qtbot, window, "First")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    window.do.edit_message()
    editor = window.findChild(MessageEditor)
    editor.edit.insertFromMimeData(mime(file))
    assert editor.note.text().startswith("Files cannot be added here") and editor.text == "First" and names(window) == []


@pytest.mark.qt_log_ignore("This plugin does not support raise")
@pytest.mark.parametrize("name", ["kept.slipchat", "KEPT.SLIPCHAT"])
@pytest.mark.parametrize("onto", ["window", "message", "edited message"])
def test_an_exported_chat_that_is_dropped_is_opened_and_not_attached(qtbot, window, tmp_path, name, onto):
    write(qtbot, window, "Keep me")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    path = tmp_path / name
    window.do.write_export(path)
    qtbot.waitUntil(lambda: path.exists() and not window.services.transfer.running, timeout=20_000)
    if onto == "window":
        drop(window, path)
    elif onto == "message":
        window.composer.edit.insertFromMimeData(mime(path))
    else:
        window.do.edit_message()
        window.findChild(MessageEditor).edit.insertFromMimeData(mime(path))
    qtbot.waitUntil(lambda: len(window.services.store.chats()) == 2, timeout=20_000)
    assert names(window) == []


def test_what_an_input_method_composes_survives_streaming_counting_and_saving(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 200.0, 150
    load(qtbot, window.services.client)
    write(qtbot, window, "Go")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    edit = window.composer.edit
    write(qtbot, window, "ab")
    QApplication.sendEvent(edit, QInputMethodEvent("にほ", []))
    composing = edit.document().firstBlock().layout().preeditAreaText()
    wait_ready(qtbot, window.services.client)
    window.writing.save()
    window.writing.count()
    qtbot.wait(400)
    assert composing == edit.document().firstBlock().layout().preeditAreaText() == "にほ"
    done = QInputMethodEvent("", [])
    done.setCommitString("日本")
    QApplication.sendEvent(edit, done)
    assert window.composer.text() == "ab日本"


def test_an_edited_message_shows_the_files_that_go_along_and_needs_no_text_beside_them(qtbot, window, loader):
    window.composer.add(Attachment("notes.txt", "some text"))
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.do.edit_message()
    editor = window.transcript.editing.editor
    assert [button.text() for button in editor.attachments.buttons] == ["notes.txt · 9 characters"]
    editor.attachments.buttons[0].click()
    editor.edit.setPlainText("And now?")
    editor.edit.setPlainText("")
    assert editor.send.isEnabled()
    editor.send.click()
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.messages[0]
    assert [file.name for file in first.attachments] == ["notes.txt"] and len(loader.engines[-1].requests) == 2
