"""What the user does and sees: writing, sending, stopping, errors, scrolling, and names for VoiceOver."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QPalette, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QTextBrowser,
)

from app.commands import COMMANDS, Situation
from app.core.attachments import EDITABLE
from app.core.meter import MeterSnapshot
from app.services.engine_client import EngineState
from app.ui.empty_state import EXAMPLES
from app.ui.prompt_edit import LONGEST_PASTE
from app.ui.slices import slices
from app.ui.transcript import AT_ONCE
from app.ui.window_actions import WindowActions
from tests.gui.conftest import load, wait_laid_out, wait_ready

# The offscreen platform says so of every dialog of fixed size; it is no fault of the window's.
OFFSCREEN_DIALOG = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")


def write(qtbot, window, text: str) -> None:
    """Types into the composer."""
    window.composer.edit.setFocus()
    qtbot.keyClicks(window.composer.edit, text)


def paste(window, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    window.composer.edit.insertFromMimeData(data)


@pytest.mark.parametrize("rate", [0.0, 412.4, 9_999.4, 9_999.6, 1e12])
def test_a_rate_of_any_size_is_shown_whole(window, rate):
    strip = window.meter
    strip.show_snapshot(MeterSnapshot(phase="done", tok_s=rate, tokens=5))
    figure = strip.figures["rate"]
    assert figure.fontMetrics().horizontalAdvance(figure.text()) <= figure.width()
    assert figure.text().startswith("> 9,999") == (rate > 9_999.5)


def test_return_sends_and_the_answer_appears_with_its_figures(qtbot, window):
    write(qtbot, window, "Explain rainbows")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer.text() == ""
    wait_ready(qtbot, window.services.client)
    answer = window.transcript.answers[-1]
    assert answer.body.text.startswith("A rainbow forms") and answer.message.state == "done"
    assert "tok/s" in answer.statistics_text and "tokens/cycle" in answer.statistics_text
    assert window.title.text() == "Explain rainbows"
    assert "Explain rainbows" in window.sidebar.chats.titles()


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.AltModifier])
def test_return_with_shift_or_option_makes_a_new_line(qtbot, window, modifier):
    write(qtbot, window, "one")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return, modifier)
    write(qtbot, window, "two")
    assert window.composer.text() == "one\ntwo" and window.services.store.chats() == []


def test_return_belongs_to_the_input_method_while_it_composes(qtbot, window):
    edit = window.composer.edit
    edit.setFocus()
    QApplication.sendEvent(edit, QInputMethodEvent("にほ", []))
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert window.services.store.chats() == []
    done = QInputMethodEvent("", [])
    done.setCommitString("日本")
    QApplication.sendEvent(edit, done)
    assert window.composer.text().startswith("日本")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[0].content.strip() == "日本"


def test_escape_stops_the_answer_and_keeps_what_is_being_written(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 30.0, 400
    write(qtbot, window, "Long story")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    write(qtbot, window, "next")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    wait_ready(qtbot, window.services.client)
    assert window.composer.text() == "next"
    assert window.transcript.answers[-1].note_text == "Stopped"


def test_the_one_button_sends_then_stops_then_sends(qtbot, window, loader, monkeypatch):
    button = window.composer.button
    assert button.text() == "Send" and not button.isEnabled()
    write(qtbot, window, "Go")
    assert button.isEnabled()
    loader.script.rate, loader.script.tokens = 30.0, 400
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "Stop" and button.isEnabled()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    monkeypatch.setattr("app.ui.composer.QApplication.doubleClickInterval", lambda: 0)  # or it is the end of a double click on Send
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "Stopping" and not button.isEnabled()
    wait_ready(qtbot, window.services.client)
    assert button.text() == "Send"


def test_text_written_before_the_model_is_ready_stays(qtbot, make_window, services, loader):
    loader.script.load_s = 0.5
    window = make_window(services)
    services.client.load("scripted")
    write(qtbot, window, "Early")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer.text() == "Early" and "not ready" in window.banner.text
    wait_ready(qtbot, services.client)


def test_a_paste_of_five_megabytes_is_refused_before_any_layout_and_loses_nothing(qtbot, window):
    QGuiApplication.clipboard().setText("x" * 5_000_000)
    write(qtbot, window, "Mine")
    window.composer.edit.paste()
    assert window.composer.text() == "Mine"
    assert "5,000,000" in window.banner.text and f"{LONGEST_PASTE:,}" in window.banner.text
    assert len(QGuiApplication.clipboard().text()) == 5_000_000
    QGuiApplication.clipboard().clear()


@pytest.mark.parametrize("text", ["word " * (EDITABLE // 4), "y" * 5_000], ids=["long", "endless line"])
def test_a_paste_too_large_to_lay_out_goes_whole_with_the_message(qtbot, window, loader, text):
    loader.script.context_length = 10**9
    load(qtbot, window.services.client)
    write(qtbot, window, "Sum up:")
    paste(window, text)
    assert window.composer.edit.toPlainText() == "Sum up:"
    window.do.send()
    wait_ready(qtbot, window.services.client)
    sent = window.services.conversation.messages[0]
    assert (sent.content, [file.text for file in sent.attachments]) == ("Sum up:", [text])
    assert loader.engines[-1].requests[-1].messages[0].content.endswith("Sum up:") and not window.composer.has_content


def test_drafts_are_kept_with_their_chat(qtbot, window):
    write(qtbot, window, "First chat")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.chat.id
    write(qtbot, window, "half a thought")
    window.do.new_chat()
    assert window.composer.text() == ""
    window.do.open_chat(first)
    assert window.composer.text() == "half a thought"


def test_a_crash_shows_one_line_and_loading_again_makes_it_work(qtbot, window, loader, caplog):
    loader.script.crash_at = 10
    write(qtbot, window, "Crash")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.LOST, timeout=20_000)
    assert "engine failed" in window.banner.text and window.banner.action.text() == "Load again"
    assert window.transcript.answers[-1].note_text.startswith("Failed")
    loader.script.crash_at = None
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    window.do.answer_again()
    wait_ready(qtbot, window.services.client)
    assert window.transcript.answers[-1].message.state == "done" and window.banner.text == ""


def test_an_overflow_offers_a_new_chat_with_the_prompt_in_it(qtbot, window, loader):
    loader.script.context_length = 20
    load(qtbot, window.services.client)
    window.composer.set_text("word " * 100)
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert "shorten it" in window.banner.text and window.banner.action.text() == "New chat"
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    assert window.services.conversation.chat is None
    assert window.composer.text().strip() == ("word " * 100).strip()


def test_a_pair_that_does_not_load_can_be_tried_again(qtbot, window, loader):
    loader.script.load_error = RuntimeError("broken")
    window.services.client.load("scripted")
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    assert window.banner.action.text() == "Load again"
    loader.script.load_error = None
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)


def test_the_view_follows_the_answer_until_the_user_scrolls_up(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 400.0, 900
    loader.script.text = "A line of the answer.\n\n"
    window.composer.set_text("Long story")
    window.do.send()
    bar = window.transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 400, timeout=20_000)
    assert window.transcript.following and bar.value() == bar.maximum()
    centre = QPointF(window.transcript.viewport().rect().center())
    wheel = QWheelEvent(
        centre, window.transcript.viewport().mapToGlobal(centre), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(window.transcript.viewport(), wheel)
    place, length = bar.value(), bar.maximum()
    assert place < length
    qtbot.waitUntil(lambda: bar.maximum() > length + 100, timeout=20_000)
    assert bar.value() == place and not window.transcript.following
    window.transcript.follow()
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert bar.value() == bar.maximum()


def test_a_long_chat_mounts_its_end_and_the_rest_on_request(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    for index in range(100):
        store.add_message(chat.id, "user" if index % 2 == 0 else "assistant", f"message {index}", "done")
    window.do.open_chat(chat.id)
    assert window.transcript.count == AT_ONCE, "more would take longer than a turn has time for"
    assert window.transcript._earlier.isHidden() and window.transcript.following
    wait_laid_out(qtbot, window)
    assert window.transcript.count == 40 and window.transcript.following
    window.transcript.mount_earlier()
    assert window.transcript.count == 80
    assert window.transcript.answers[0].body.text == "message 21"


def test_what_comes_above_a_moment_after_opening_moves_nothing_for_who_scrolled_up_already(qtbot, window):
    store, transcript = window.services.store, window.transcript
    chat = store.create_chat("Long")
    for index in range(100):
        store.add_message(chat.id, "user" if index % 2 == 0 else "assistant", f"message {index}\n" * 4, "done")
    window.do.open_chat(chat.id)
    qtbot.waitUntil(lambda: transcript.count > AT_ONCE, timeout=20_000)
    transcript.verticalScrollBar().setValue(0)
    first = transcript._mounted[min(transcript._mounted)]
    before = first.mapTo(transcript.viewport(), QPoint(0, 0)).y()
    wait_laid_out(qtbot, window)
    qtbot.wait(20)
    assert transcript.count == 40 and first.mapTo(transcript.viewport(), QPoint(0, 0)).y() == before


def test_a_long_message_is_laid_out_in_part_until_asked_for(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    message = store.add_message(chat.id, "user", "word " * 20_000, "sent")
    window.do.open_chat(chat.id)
    widget = window.transcript._mounted[message.id]
    assert [len(text.toPlainText()) for text in widget.text_widgets()] == [2_000]
    widget.show_all()
    assert slices().waiting and len(widget.text_widgets()) < 10  # the rest follows in later turns
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert "".join(text.toPlainText() for text in widget.text_widgets()) == message.content


def test_examples_are_sent_with_one_click(qtbot, window):
    qtbot.mouseClick(window.empty.buttons[1], Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[0].content == EXAMPLES[1]


def test_every_control_has_a_name_for_voiceover(qtbot, window):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.do.set_mode("compare")
    kinds = (QAbstractButton, QLineEdit, QPlainTextEdit, QTextBrowser, QComboBox, QScrollArea)
    controls = [control for kind in kinds for control in window.findChildren(kind)]
    assert len(controls) > 20
    nameless = [
        control for control in controls
        if not (control.accessibleName() or (isinstance(control, QAbstractButton) and control.text()))
        and not control.objectName().startswith("qt_") and not control.isHidden() and not isinstance(control.parent(), QLineEdit)
    ]  # fmt: skip
    assert nameless == []


def test_every_command_runs_something_the_window_can_do():
    names = [command.id for command in COMMANDS]
    assert len(names) == len(set(names)) > 20

    class Spy:
        def __init__(self):
            self.called = []

        def __getattr__(self, name):
            return lambda *arguments: self.called.append(name)

    for command in COMMANDS:
        spy = Spy()
        command.run(spy)
        assert len(spy.called) == 1 and callable(getattr(WindowActions, spy.called[0]))


def test_no_two_commands_share_a_shortcut(window):
    keys = [key.toString() for action in window.actions_by_id.values() for key in action.shortcuts()]
    assert len(keys) == len(set(keys)) > 20


def test_commands_are_enabled_only_when_they_can_be_done():
    by_id = {command.id: command.enabled for command in COMMANDS}
    ready = Situation(state=EngineState.READY, has_text=True)
    assert by_id["send"](ready) and not by_id["stop"](ready) and not by_id["replay"](ready)
    busy = Situation(state=EngineState.DECODING, has_text=True, has_question=True)
    assert by_id["stop"](busy) and not by_id["send"](busy) and not by_id["answer_again"](busy)
    assert not by_id["send"](Situation(state=EngineState.LOST, has_text=True))


def test_a_dark_palette_is_followed_at_once(qtbot, qapp, window):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    before = qapp.palette()
    light = window.meter.figures["rate"].palette().color(QPalette.ColorRole.WindowText)
    dark = QPalette(Qt.GlobalColor.black)
    try:
        qapp.setPalette(dark)
        rate = window.meter.figures["rate"]
        qtbot.waitUntil(lambda: rate.palette().color(QPalette.ColorRole.WindowText) != light, timeout=20_000)
    finally:
        qapp.setPalette(before)


def test_text_size_scales_the_content_only(qtbot, window):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    prose, button = window.transcript.answers[-1].body.widgets[0], window.composer.button
    before, chrome = prose.font().pointSizeF(), button.font().pointSizeF()
    window.do.change_text_size(1)
    assert prose.font().pointSizeF() > before and button.font().pointSizeF() == chrome
    window.do.change_text_size(0)
    assert prose.font().pointSizeF() == before


def test_the_token_figure_counts_the_chat_with_the_draft(qtbot, window):
    write(qtbot, window, "one two three")
    qtbot.waitUntil(lambda: window.composer.context.text() == "7 of 8,192 tokens", timeout=20_000)
