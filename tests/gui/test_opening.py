"""Links and exported chats that other programs hand over, and About with every licence."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QFileOpenEvent

from app.core.links import LinkError, prompt_of, read_chat
from app.main import Options, Program
from app.ui.about import AboutDialog
from app.ui.opening import open_url
from tests.gui.conftest import delete_later, wait_ready

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")


def test_a_link_fills_the_message_field_and_sends_nothing(qtbot, window, loader):
    open_url(window, QUrl("slipstream:new?prompt=Why%20is%20the%20sky%20blue%3F%0A%26%20why%20red%3F"))
    assert window.composer.text() == "Why is the sky blue?\n& why red?"
    qtbot.wait(100)
    assert loader.engines[-1].requests == [] and window.services.conversation.chat is None


@pytest.mark.parametrize("link", ["slipstream:", "slipstream://", "slipstream:new"])
def test_a_link_without_a_prompt_only_raises_the_window(window, link):
    window.composer.set_text("being written")
    window.showMinimized()
    open_url(window, QUrl(link))
    assert window.composer.text() == "being written" and not window.isMinimized()


@pytest.mark.parametrize(
    "link", ["slipstream:delete", "slipstream://run?prompt=x", "https://new?prompt=x", f"slipstream:new?prompt={'x' * 20_001}"]
)
def test_other_links_are_refused_in_one_line(window, link):
    with pytest.raises(LinkError):
        prompt_of(link)
    open_url(window, QUrl(link))
    assert window.banner.text and "\n" not in window.banner.text and window.composer.text() == ""


def test_an_exported_chat_opens_again_as_it_was(qtbot, window, tmp_path):
    window.composer.set_text("Tell me more")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    before = window.services.conversation.messages
    window.do.write_export(tmp_path / "My chat.slipchat")
    open_url(window, QUrl.fromLocalFile(str(tmp_path / "My chat.slipchat")))
    talk = window.services.conversation
    assert talk.chat.title == "Tell me more" and len(window.services.store.chats()) == 2
    assert [(m.role, m.content, m.state, m.statistics) for m in talk.messages] == [
        (m.role, m.content, m.state, m.statistics) for m in before
    ]


BAD = [
    "",
    "[]",
    "{}",
    json.dumps({"format": "slipstream-chat-9", "title": "", "messages": []}),
    json.dumps({"format": "slipstream-chat-1", "title": "", "messages": [{"role": "root", "content": "", "state": "done"}]}),
    json.dumps({"format": "slipstream-chat-1", "title": "", "messages": [{"role": "user", "content": "", "state": "x"}]}),
    json.dumps({"format": "slipstream-chat-1", "title": "", "messages": "abc"}),
    "[" * 100_000,
]


@pytest.mark.parametrize("content", BAD)
def test_a_file_that_is_no_exported_chat_changes_nothing(window, tmp_path, content):
    path = tmp_path / "x.slipchat"
    path.write_text(content)
    open_url(window, QUrl.fromLocalFile(str(path)))
    assert path.name in window.banner.text and "\n" not in window.banner.text and window.services.store.chats() == []


def test_an_answer_exported_while_it_was_written_is_imported_as_cut_short(tmp_path):
    turn = {"role": "assistant", "content": "half", "state": "streaming", "statistics": None}
    path = tmp_path / "x.slipchat"
    path.write_text(json.dumps({"format": "slipstream-chat-1", "title": "T", "messages": [turn]}))
    assert read_chat(path).messages[0].state == "interrupted"


def test_the_finder_s_open_event_reaches_the_window(qapp, qtbot, tmp_path, loader):
    program = Program(qapp, tmp_path, Options(pair="scripted"), loader)
    try:
        program.window.show()
        QCoreApplication.sendEvent(qapp, QFileOpenEvent(QUrl("slipstream:new?prompt=Hello")))
        assert program.window.composer.text() == "Hello"
    finally:
        program.quit()
        delete_later(program.window)
        delete_later(program.services)


def test_about_shows_the_licences_of_what_is_inside(qtbot, window):
    window.do.show_about()
    dialog = window.findChild(AboutDialog)
    assert dialog.texts.isHidden()
    dialog.licences_button.click()
    text = dialog.texts.toPlainText()
    for said in (
        "mlx 0.32.4\n====",
        "GNU LESSER GENERAL PUBLIC LICENSE",
        "SmolLM2-135M-Instruct",
        "Python\n======",
        "PYTHON SOFTWARE",
    ):
        assert said in text, said
    dialog.close()
