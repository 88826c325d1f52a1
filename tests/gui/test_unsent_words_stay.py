"""What was written and not sent: examples, links and other chats never cost a word, a file or an option of it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl

from app.core.chat import Attachment
from app.core.options import ChatOptions
from app.ui.empty_state import EXAMPLES
from app.ui.opening import open_url
from tests.gui.conftest import load, wait_ready

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")
NOTES = Attachment("notes.txt", "bees")


def test_an_example_that_is_sent_leaves_the_draft_where_it_is(qtbot, window):
    talk = window.services.conversation
    window.composer.set_text("half a thought", [NOTES])
    qtbot.mouseClick(window.empty.buttons[1], Qt.MouseButton.LeftButton)
    wait_ready(qtbot, talk.client)
    assert [message.content for message in talk.messages[:1]] == [EXAMPLES[1]] and talk.messages[0].attachments == ()
    assert window.composer.text() == "half a thought" and window.composer.attachments == (NOTES,)
    first = talk.chat.id
    window.do.new_chat()
    assert not window.composer.has_content, "the draft is in two chats"
    window.do.open_chat(first)
    assert window.composer.text() == "half a thought" and window.composer.attachments == (NOTES,)


def test_an_example_does_not_replace_a_draft_while_no_model_is_there(make_window, services):
    window = make_window(services)
    window.composer.set_text("half a thought")
    window.empty.buttons[1].click()
    assert window.composer.text() == "half a thought" and "No model is loaded" in window.banner.text
    window.composer.clear()
    window.empty.buttons[1].click()
    assert window.composer.text() == EXAMPLES[1]


def test_a_link_s_text_comes_below_a_draft_with_its_files(window):
    window.composer.set_text("half a thought", [NOTES])
    open_url(window, QUrl("slipstream:new?prompt=Why%3F"))
    assert window.composer.text() == "half a thought\n\nWhy?" and window.composer.attachments == (NOTES,)
    long = "half a thought " * 1_000
    window.composer.set_text(long)
    open_url(window, QUrl(f"slipstream:new?prompt={'why%20' * 3_000}"))
    assert window.composer.text() == long and window.composer.attachments[-1].text == "why " * 3_000


def test_options_of_a_new_chat_are_there_again_after_another_chat_and_after_a_restart(qtbot, make_services, loader):
    services = make_services()
    load(qtbot, services.client)
    talk = services.conversation
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    first = talk.chat.id
    talk.open(None)
    talk.options.set(ChatOptions(system="Rhyme.", temperature=0.5))
    talk.open(first)
    assert talk.options.current.system == ""
    talk.open(None)
    assert talk.options.current.system == "Rhyme." and talk.options.current.temperature == 0.5
    assert services.shutdown()
    again = make_services().conversation
    again.open(None)
    assert again.options.current.system == "Rhyme."
    load(qtbot, again.client)
    again.send("And now?", "dflash")
    wait_ready(qtbot, again.client)
    again.open(None)
    assert again.options.current == again.options.default, "the next new chat begins anew"


def test_a_new_chat_put_back_to_the_defaults_follows_the_settings_again(qtbot, services):
    talk = services.conversation
    talk.options.set(ChatOptions(temperature=0.5))
    talk.options.set(talk.options.default)
    services.settings.update(temperature=1.2)
    assert talk.options.current.temperature == 1.2
