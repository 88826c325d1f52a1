"""While the search in a chat is open, its marks are on what is on show, whatever happens to the chat."""

from __future__ import annotations

import pytest

from tests.gui.conftest import load, wait_ready


def ask(window, qtbot, text: str) -> None:
    window.composer.set_text(text)
    window.do.send()
    wait_ready(qtbot, window.services.client)


def delete_and_undo(window) -> None:
    window.do.delete_message()
    window.do.undo_delete()


def reopen(window) -> None:
    chat = window.services.conversation.chat
    window.do.delete_chat()
    window.services.shelf.restore(chat.id)
    window.do.open_chat(chat.id)


CHANGES = {
    "switched": lambda window: window.do.step_version(-1),
    "deleted": lambda window: window.do.delete_message(),
    "taken back": delete_and_undo,
    "opened again": reopen,
    "branched": lambda window: window.do.branch_chat(),
    "answered again": lambda window: window.do.answer_again(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_hit_is_on_show_and_marked(qtbot, window, loader, change):
    loader.script.text, loader.script.tokens = "word one\n\n```\nword = 1\n```\n", 30
    load(qtbot, window.services.client)
    ask(window, qtbot, "a word")
    window.do.answer_again()
    wait_ready(qtbot, window.services.client)
    window.do.find_in_chat()
    window.finder.bar.field.setText("word")
    window.finder.bar.settle()
    CHANGES[change](window)
    wait_ready(qtbot, window.services.client)
    qtbot.wait(20)  # what was on show before is gone now
    widgets = {hit.widget for hit in window.finder.hits}
    shown = {widget for answer in window.transcript._mounted.values() for widget in answer.text_widgets()}
    assert widgets and widgets <= shown
    assert all(widget.extraSelections() for widget in widgets)
    for _ in range(len(window.finder.hits) + 1):
        window.finder.step(1)
    window.finder.close()
    assert not any(widget.extraSelections() for widget in shown)
