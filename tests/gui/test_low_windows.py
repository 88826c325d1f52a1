"""A low window with much to say: what is being written keeps its room, and the rest scrolls."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from app.core.chat import Attachment


def crowd(window, qtbot, files: int = 12) -> None:
    """As little room as there can be, with many files, several lines of text and a message of two lines."""
    window.resize(1, 1)
    window.banner.show_message("A message that needs more than one line in a window that is as small as it gets. " * 2)
    window.composer.edit.setPlainText("one\ntwo\nthree")
    for number in range(files):
        window.composer.add(Attachment(f"file number {number}.txt", "some text"))
    qtbot.waitUntil(lambda: window.composer.height() >= window.composer.minimumSizeHint().height(), timeout=20_000)


def within(parts: list[QWidget]) -> bool:
    """Whether each part begins below the one before."""
    return all(above.geometry().bottom() < below.geometry().top() for above, below in itertools.pairwise(parts))


@pytest.mark.parametrize("page", ["empty", "transcript", "compare"])
def test_many_attachments_leave_the_message_and_its_buttons_whole(window, qtbot, page):
    window.stack.setCurrentWidget(getattr(window, page))
    crowd(window, qtbot)
    composer = window.composer
    assert within([composer.chips, composer.edit, composer.button])
    assert composer.button.height() >= composer.button.sizeHint().height()
    banner_end = window.banner.mapTo(window, window.banner.rect().bottomLeft()).y()
    assert banner_end < composer.mapTo(window, composer.rect().topLeft()).y()


def test_a_comparison_scrolls_to_its_verdict_where_it_does_not_fit(window, qtbot):
    window.stack.setCurrentWidget(window.compare)
    crowd(window, qtbot)
    view = window.compare
    assert view.splitter.height() >= view.splitter.minimumSizeHint().height()
    assert view.copy_button.visibleRegion().isEmpty()
    view.copy_button.setFocus()
    view.ensureWidgetVisible(view.copy_button)
    assert view.copy_button.height() >= view.copy_button.sizeHint().height()
    assert not view.copy_button.visibleRegion().isEmpty()


def test_the_newest_attachment_and_the_one_with_the_focus_are_in_view(window, qtbot):
    crowd(window, qtbot)
    chips = window.composer.chips
    qtbot.waitUntil(lambda: not chips.chips[-1].visibleRegion().isEmpty(), timeout=20_000)
    assert chips.chips[0].visibleRegion().isEmpty()
    chips.chips[-1].setFocus()
    for left in range(11, 0, -1):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Delete)
        assert QApplication.focusWidget() is chips.chips[-1]
        assert len(chips.chips) == left
        qtbot.waitUntil(lambda: not chips.chips[-1].visibleRegion().isEmpty(), timeout=20_000)
    qtbot.waitUntil(lambda: chips.height() == chips.chips[0].height(), timeout=20_000)


def test_the_examples_of_a_new_chat_scroll_where_they_do_not_fit(window, qtbot):
    crowd(window, qtbot)
    first, last = window.empty.buttons[0], window.empty.buttons[-1]
    assert first.height() >= first.sizeHint().height()
    last.setFocus()
    window.empty.ensureWidgetVisible(last)
    assert not last.visibleRegion().isEmpty()
