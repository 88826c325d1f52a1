"""jundot/omlx#721, egoist/chatwise-releases#770, janhq/jan#4253: the view was torn to the end while somebody read further up."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from tests.gui.conftest import wait_ready


def wheel(transcript, notches: int) -> None:
    """Turns the mouse wheel over the chat; up is positive."""
    viewport = transcript.viewport()
    centre = QPointF(viewport.rect().center())
    event = QWheelEvent(
        centre, viewport.mapToGlobal(centre), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewport, event)


@pytest.fixture
def streaming(qtbot, window, loader):
    """The transcript while a long answer grows in it."""
    loader.script.rate, loader.script.tokens, loader.script.text = 400.0, 1_200, "A line of the answer.\n\n"
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: window.transcript.verticalScrollBar().maximum() > 400, timeout=20_000)
    return window.transcript


def test_one_notch_up_lets_go_and_the_end_takes_hold_again(qtbot, window, streaming):
    bar = streaming.verticalScrollBar()
    assert streaming.following
    wheel(streaming, 1)
    place, length = bar.value(), bar.maximum()
    assert not streaming.following and place < length
    qtbot.waitUntil(lambda: bar.maximum() > length + 200, timeout=20_000)
    assert bar.value() == place
    while bar.value() < bar.maximum():
        wheel(streaming, -1_000)  # a page at most, whatever it turns
    assert streaming.following and bar.value() == bar.maximum()
    length = bar.maximum()
    qtbot.waitUntil(lambda: bar.maximum() > length + 100, timeout=20_000)
    assert bar.value() == bar.maximum()
    window.do.stop()
    wait_ready(qtbot, window.services.client)


def test_the_end_of_an_answer_moves_nothing_for_who_reads_further_up(qtbot, window, streaming):
    wheel(streaming, 2)
    place = streaming.verticalScrollBar().value()
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    qtbot.wait(50)
    assert streaming.verticalScrollBar().value() == place and not streaming.following


def test_earlier_messages_come_above_without_moving_what_is_read(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    for number in range(100):
        store.add_message(chat.id, "user" if number % 2 else "assistant", f"message {number}\n" * 4, "done")
    window.do.open_chat(chat.id)
    qtbot.wait(50)
    transcript = window.transcript
    transcript.verticalScrollBar().setValue(0)
    first = transcript._mounted[min(transcript._mounted)]
    before = first.mapTo(transcript.viewport(), QPoint(0, 0)).y()
    transcript.mount_earlier()
    qtbot.wait(50)
    after = first.mapTo(transcript.viewport(), QPoint(0, 0)).y()
    assert abs(after - before) <= transcript._earlier.height() + 24  # the button above it may be gone
