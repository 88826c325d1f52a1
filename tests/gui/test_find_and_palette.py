"""Finding in the open chat, and the command palette: everything with the keys alone."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.services.engine_client import EngineState
from app.ui import find_in_chat
from app.ui.palette import Palette
from app.ui.slices import slices
from tests.gui.conftest import wait_ready

DIALOG = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")


@pytest.fixture
def chat(window):
    """A chat of 120 messages of which the last 40 are mounted."""
    store = window.services.store
    chat = store.create_chat("Long")
    for index in range(60):
        store.add_message(chat.id, "user", f"question {index}" + (" rainbow" if index in (2, 58) else ""), "sent")
        text = f"answer {index}\n\n```\nRAINBOW = {index}\n```" if index == 59 else f"<think>\nrainbow\n</think>\n\nanswer {index}"
        store.add_message(chat.id, "assistant", text, "done")
    window.do.open_chat(chat.id)
    return chat


def find(qtbot, window, text: str, counted: bool = True):
    window.do.find_in_chat()
    window.finder.bar.field.clear()
    qtbot.keyClicks(window.finder.bar.field, text)
    window.finder.bar.settle()
    if counted:
        wait_counted(qtbot, window)
    return window.finder


def wait_counted(qtbot, window) -> None:
    qtbot.waitUntil(lambda: window.finder.bar.count.text() != "…", timeout=20_000)


def test_every_hit_is_marked_and_reached_in_order_also_where_it_is_not_mounted(qtbot, window, chat):
    finder = find(qtbot, window, "rainbow")
    assert finder.bar.count.text() == "3 of 3", "thoughts are folded away and not searched"
    assert finder.hits[-1].widget is not None and finder.hits[0].widget is None
    marked = [len(widget.extraSelections()) for widget in finder._painted]
    assert marked == [1, 1]
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "2 of 3"
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "1 of 3" and finder.hits[0].widget is not None
    shown = finder.hits[0].widget
    assert shown.toPlainText() == "question 2 rainbow"
    qtbot.waitUntil(lambda: not shown.visibleRegion().isEmpty(), timeout=20_000)
    qtbot.wait(100)
    assert not shown.visibleRegion().isEmpty() and not window.transcript.following
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "3 of 3", "around the end"
    window.do.find_in_chat(1)
    assert finder.bar.count.text() == "1 of 3"


def test_escape_closes_the_search_takes_the_marks_away_and_stops_nothing(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 40.0, 400
    window.composer.set_text("Rainbows?")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    window.activateWindow()
    finder = find(qtbot, window, "rainbow")
    qtbot.waitUntil(lambda: finder.bar.field.hasFocus(), timeout=20_000)
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Escape)
    assert finder.bar.isHidden() and window.services.client.state is EngineState.DECODING
    assert all(not widget.extraSelections() for answer in window.transcript.answers for widget in answer.text_widgets())
    window.do.stop()
    wait_ready(qtbot, window.services.client)


def test_what_is_nowhere_is_said_and_goes_nowhere(qtbot, window, chat):
    finder = find(qtbot, window, "submarine")
    assert finder.bar.count.text() == "Not found" and not finder.bar.after.isEnabled()
    window.do.find_in_chat(1)
    finder.bar.field.clear()
    finder.bar.settle()
    assert finder.bar.count.text() == ""


def test_a_hit_beyond_the_part_of_a_long_message_that_is_shown_is_found(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    store.add_message(chat.id, "user", "word " * 1_000 + "needle", "sent")
    window.do.open_chat(chat.id)
    finder = find(qtbot, window, "needle")
    assert finder.bar.count.text() == "1 of 1" and finder.hits[0].widget is not None


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_hit_in_a_part_that_is_not_laid_out_yet_is_counted_at_once_and_gone_to_when_it_is(qtbot, window, role):
    store = window.services.store
    chat = store.create_chat("Long")
    filler = "\n\n".join("some words to fill the page " * 8 for _ in range(400))
    store.add_message(chat.id, role, f"{filler} needle {filler}", "sent" if role == "user" else "done")
    window.do.open_chat(chat.id)
    finder = find(qtbot, window, "needle")
    assert slices().waiting and finder.bar.count.text() == "1 of 1" and finder.hits[0].widget is None
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert finder.bar.count.text() == "1 of 1"
    shown = finder.hits[0].widget
    qtbot.waitUntil(lambda: not shown.visibleRegion().isEmpty(), timeout=20_000)


@pytest.mark.parametrize("lines", [300, 3_000])
def test_a_hit_at_the_end_of_a_long_message_is_in_view(qtbot, window, lines):
    store = window.services.store
    chat = store.create_chat("Long")
    store.add_message(chat.id, "user", "".join(f"line {number} of it\n" for number in range(lines)) + "the very end", "sent")
    window.do.open_chat(chat.id)
    find(qtbot, window, "very end")
    view = window.transcript.viewport()

    def is_seen() -> bool:
        hit = window.finder.hits[0]
        return hit.widget is not None and view.rect().contains(hit.widget.mapTo(view, hit.widget.cursorRect(hit.cursor).center()))

    qtbot.waitUntil(lambda: not slices().waiting and is_seen(), timeout=20_000)
    qtbot.wait(50)
    assert is_seen() and window.finder.bar.count.text() == "1 of 1"


def test_every_hit_of_a_very_long_chat_is_counted_without_a_stall_and_can_be_reached(qtbot, window, monkeypatch):
    monkeypatch.setattr(find_in_chat, "SLICE_S", 0.0)
    monkeypatch.setattr(find_in_chat, "MARKED", 100)
    store = window.services.store
    chat = store.create_chat("Long")
    for _message in range(60):
        store.add_message(chat.id, "user", "so " * 50, "sent")
    window.do.open_chat(chat.id)
    finder = find(qtbot, window, "so", counted=False)
    assert finder.bar.count.text() == "…" and not finder.bar.before.isEnabled(), "one message a turn"
    window.do.find_in_chat(-1)
    qtbot.waitUntil(lambda: finder.bar.count.text() == "3,000 of 3,000", timeout=20_000)
    assert sum(len(widget.extraSelections()) for widget in finder._painted) == 100
    for place in range(2_999, 2_840, -1):
        window.do.find_in_chat(-1)
        assert finder.bar.count.text() == f"{place:,} of 3,000" and finder.hits[place - 1].widget is not None
    finder._place = 0
    window.do.find_in_chat(-1)
    assert finder.bar.count.text() == "3,000 of 3,000", "around the end"
    finder._place = 2_999
    window.do.find_in_chat(1)
    assert finder.bar.count.text() == "1 of 3,000" and finder.hits[0].widget is not None


def test_another_chat_is_searched_for_the_same_word(qtbot, window, chat):
    finder = find(qtbot, window, "rainbow")
    window.do.new_chat()
    wait_counted(qtbot, window)
    assert finder.bar.count.text() == "Not found" and finder.hits == []
    window.do.open_chat(chat.id)
    wait_counted(qtbot, window)
    assert finder.bar.count.text().endswith("of 3")


@DIALOG
def test_the_palette_runs_a_command_by_some_letters_of_its_name(qtbot, window):
    window.do.show_palette()
    palette = window.findChild(Palette)
    qtbot.keyClicks(palette.field, "lgrtxt")
    assert palette.names[0] == "Larger Text"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.services.settings.current.text_size == 115
    qtbot.waitUntil(lambda: window.findChild(Palette) is None, timeout=20_000)


@DIALOG
def test_the_palette_knows_every_command_with_its_shortcut_and_chats_and_models(qtbot, window):
    window.services.store.create_chat("Lighthouse keepers")
    window.do.show_palette()
    palette = window.findChild(Palette)
    names = {entry.name: entry for entry in palette._entries}
    for key, action in window.actions_by_id.items():
        assert key == "palette" or action.text().rstrip(" …") in names
    assert names["New Chat"].hint == "Ctrl+N" and not names["Stop"].enabled
    assert any(entry.hint == "Model" for entry in palette._entries)
    qtbot.keyClicks(palette.field, "lightho")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.services.conversation.chat.title == "Lighthouse keepers"


@DIALOG
def test_what_cannot_be_done_now_is_passed_over_in_the_palette(qtbot, window):
    window.do.show_palette()
    palette = window.findChild(Palette)
    qtbot.keyClicks(palette.field, "sto")
    assert "Stop" in palette.names
    palette.field.setText("s")
    for _step in range(80):
        qtbot.keyClick(palette.field, Qt.Key.Key_Down)
        assert palette._shown[palette.list.currentRow()].enabled
    palette.field.setText("zzzzz")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible() and palette.names == []
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.findChild(Palette) is None, timeout=20_000)
    assert QApplication.activeModalWidget() is None
