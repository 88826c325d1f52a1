"""Links and exported chats that other programs hand over, and About with every licence."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QDesktopServices, QFileOpenEvent, QGuiApplication
from PySide6.QtWidgets import QMessageBox

from app.core.links import LinkError, prompt_of
from app.main import Options, Program
from app.services.crashlog import LOG
from app.ui.about import AboutDialog
from app.ui.links import ask_to_open
from app.ui.opening import open_url
from tests.gui.conftest import delete_later

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


@pytest.mark.parametrize("kind", ["log", "link"])
def test_where_no_program_opens_a_file_or_a_link_its_place_is_told_and_can_be_copied(qtbot, window, monkeypatch, kind):
    monkeypatch.setattr(QDesktopServices, "openUrl", staticmethod(lambda _url: False))
    if kind == "log":
        window.do.show_log()
        place = str(window.services.folder / LOG)
    else:
        place = "https://example.org/a"
        asked = ask_to_open(QUrl(place), window)
        next(button for button in asked.buttons() if button.text() == "Open").click()
    told = next(box for box in window.findChildren(QMessageBox) if "No program" in box.text())
    assert told.informativeText() == place
    next(button for button in told.buttons() if button.text() == "Copy address").click()
    assert QGuiApplication.clipboard().text() == place


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
