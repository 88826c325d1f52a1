"""What an answer may and may not do on screen: links ask, images stay away, wide parts scroll, formulas and thoughts read well."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QTextCursor
from PySide6.QtWidgets import QApplication, QMessageBox

from app.ui.code_block import LONG, CodeBlock
from app.ui.links import ask_to_open
from tests.gui.conftest import load, wait_ready
from tests.gui.test_blocks import body, settle  # noqa: F401
from tests.scripted import words_of

OFFSCREEN_DIALOG = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")


@pytest.fixture
def server():
    """A real web server that notes what it is asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            pass

    seen: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    server.seen = seen
    yield server
    server.shutdown()
    server.server_close()


def test_a_remote_image_is_never_fetched_and_shows_as_a_link(qtbot, body, server):  # noqa: F811
    address = f"http://127.0.0.1:{server.server_port}/spy.png"
    body.set_text(f"Look: ![a cat]({address}) and <img src='{address}'> and ![]({address})")
    qtbot.wait(150)
    assert server.seen == []
    prose = body.widgets[0]
    assert prose.toPlainText().endswith(f"Image: {address}") and "Image: a cat" in prose.toPlainText()
    assert f"<img src='{address}'>" in prose.toPlainText()
    body.set_text("`![](x.png)` and ![](data:image/png;base64," + "A" * 300 + ")")
    assert body.widgets[0].toPlainText() == "![](x.png) and Image: data:image/png;base64," + "A" * 58
    body.set_text(f"![a cat]({address})")
    prose = body.widgets[0]
    cursor = QTextCursor(prose.document().find("a cat"))
    assert cursor.charFormat().anchorHref() == address


@OFFSCREEN_DIALOG
@pytest.mark.parametrize(("button", "opens"), [("Open", True), ("Copy address", False), ("Cancel", False)])
def test_a_link_shows_its_address_and_opens_only_when_told_to(qtbot, monkeypatch, window, button, opens):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", staticmethod(lambda url: opened.append(url.toString()) or True))
    box = ask_to_open(QUrl("https://еxample.org/a?b=1"), window)  # its first letter is Cyrillic
    assert box.informativeText() == "https://xn--xample-2of.org/a?b=1" and not opened
    assert box.defaultButton().text().replace("&", "") == "Cancel"
    chosen = next(each for each in box.buttons() if each.text().replace("&", "") == button)
    qtbot.mouseClick(chosen, Qt.MouseButton.LeftButton)
    assert bool(opened) is opens
    if button == "Copy address":
        assert QGuiApplication.clipboard().text().startswith("https://xn--")


@OFFSCREEN_DIALOG
@pytest.mark.parametrize("address", ["file:///etc/passwd", "javascript:alert(1)", "smb://host/share", "slipstream:new?prompt=x"])
def test_other_addresses_do_nothing(window, address):
    assert ask_to_open(QUrl(address), window) is None and window.findChild(QMessageBox) is None


def test_a_wide_table_scrolls_sideways_and_a_narrow_one_wraps(qtbot, body):  # noqa: F811
    wide = "|" + "|".join(f" heading {index} " for index in range(20)) + "|\n|" + "---|" * 20 + "\n|" + " some words |" * 20
    narrow = "| a | b |\n|---|---|\n| one | " + "word " * 60 + " |"
    body.set_text(f"{wide}\n\n{narrow}")
    first, second = body.widgets
    qtbot.waitUntil(lambda: first.horizontalScrollBar().maximum() > 100, timeout=20_000)
    qtbot.waitUntil(lambda: first.width() == body.width(), timeout=20_000)
    assert second.horizontalScrollBar().maximum() == 0 and second.height() > 60
    assert first.horizontalScrollBar().value() == 0
    assert first.width() <= body.width() <= 600 and first.focusPolicy() == Qt.FocusPolicy.StrongFocus
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Right)
    assert first.horizontalScrollBar().value() > 0


def test_a_long_line_of_code_never_widens_the_column(qtbot, body):  # noqa: F811
    body.set_text("```\n" + "x = 1; " * 200 + "\n```")
    code = body.widgets[0]
    qtbot.waitUntil(lambda: code.edit.horizontalScrollBar().maximum() > 0, timeout=20_000)
    assert body.width() <= 600


def test_formulas_show_as_text_and_copy_as_latex(qtbot, body):  # noqa: F811
    text = "So $x^2$ grows,\nand \\(\\frac{a}{b}\\) stays.\n\n- $5 or $10\n- `$y^2$`"
    body.set_text(text)
    prose, prices = body.widgets
    assert prose.toPlainText().replace("\u2028", "\n") == "So x² grows,\nand a/b stays."
    assert "$5 or $10" in prices.toPlainText() and "$y^2$" in prices.toPlainText()
    prose.selectAll()
    prose.copy()
    assert QGuiApplication.clipboard().text() == "So $x^2$ grows,\nand \\(\\frac{a}{b}\\) stays."
    cursor = prose.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(2, QTextCursor.MoveMode.KeepAnchor)
    prose.setTextCursor(cursor)
    prose.copy()
    assert QGuiApplication.clipboard().text() == "So"


def think(loader, text: str, opened: str = "") -> None:
    loader.script.text, loader.script.open_tag, loader.script.tokens = text, opened, len(words_of(text))


def ask(qtbot, window, mode: str = "dflash"):
    window.do.set_mode(mode)
    window.composer.set_text("Why?")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: not talk.client.busy and talk.comparison.running is None, timeout=20_000)
    wait_ready(qtbot, talk.client)
    return window.transcript.answers[-1]


@pytest.mark.parametrize("rate", [100.0, 0.0], ids=["token by token", "all in one batch"])
def test_thoughts_are_folded_away_and_open_by_keyboard(qtbot, window, loader, rate):
    think(loader, "<think>\nFirst **this**.\n</think>\n\nThen that.")
    loader.script.rate = rate
    answer = ask(qtbot, window)
    block = answer.body.thinking
    assert answer.body.answer == "Then that." and answer.body.widgets[0].toPlainText() == "Then that."
    assert block.isVisible() and block.button.text().startswith("Thought for") and block._column is None
    block.button.setFocus()
    qtbot.keyClick(block.button, Qt.Key.Key_Space)
    assert block._column.widgets[0].toPlainText() == "First this."
    answer.copy_answer()
    assert QGuiApplication.clipboard().text() == "Then that."


def test_the_time_of_thinking_is_the_engine_s_and_is_kept(qtbot, window, services):
    store = services.store
    chat = store.create_chat("Thoughts")
    text = "<think>\nhm\n</think>\n\nYes."
    figures = {"completion_tokens": 9, "thinking_s": 3.21, "thinking_tokens": 5}
    store.add_message(chat.id, "user", "Why?", "sent")
    store.add_message(chat.id, "assistant", text, "done", figures)
    store.add_message(chat.id, "assistant", "<think>\nnever fin", "stopped", {**figures, "thinking_s": 61.0})
    window.do.open_chat(chat.id)
    texts = [answer.body.thinking.button.text() for answer in window.transcript.answers]
    assert "Thought for 3.2\u00a0s" in texts or "Thought for 1\u00a0min 1\u00a0s, cut short" in texts


def test_thoughts_show_that_they_go_on_while_they_stream(qtbot, window, loader):
    think(loader, "word " * 200 + "\n</think>\n\nDone.", opened="<think>")
    loader.script.rate = 60.0
    load(qtbot, window.services.client)
    window.composer.set_text("Why?")
    window.do.send()
    answer = window.transcript.answers[-1]
    qtbot.waitUntil(lambda: answer.body.thinking is not None, timeout=20_000)
    qtbot.waitUntil(lambda: answer.body.thinking.button.text().startswith("Thinking … 1"), timeout=20_000)
    assert answer.body.answer == "" and not answer._waiting.isVisible()
    answer.body.thinking.button.setChecked(True)
    before = len(answer.body.thinking._column.text)
    qtbot.waitUntil(lambda: len(answer.body.thinking._column.text) > before, timeout=20_000)
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert answer.body.thinking.button.text().endswith("cut short")


def test_an_answer_without_thoughts_shows_no_trace_of_them(qtbot, window, loader):
    think(loader, "<think>\n\n</think>\n\nYes, `<think>` is a tag.")
    answer = ask(qtbot, window)
    assert answer.body.thinking is None and answer.body.answer == "Yes, `<think>` is a tag."


def test_a_long_code_block_has_its_copy_button_at_both_ends(qtbot, body):  # noqa: F811
    code = "\n".join(f"    line {index}" for index in range(LONG))
    body.set_text(f"```python\n{code}\n```\n\n```\nshort\n```")
    long, short = (widget for widget in body.widgets if isinstance(widget, CodeBlock))
    qtbot.waitUntil(lambda: long._copy.isVisible() and long._copy_below.isVisible(), timeout=20_000)
    assert not short._copy_below.isVisible() and long._copy_below.y() > long.edit.y() > long._copy.y()
    qtbot.mouseClick(long._copy_below, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == code
    settle(qtbot, body)
    qtbot.waitUntil(lambda: long._copy.text() == "Copy", timeout=20_000)


@pytest.mark.qt_log_ignore("This plugin does not support (raise|grabbing)")
def test_the_figures_of_an_answer_open_by_keyboard_and_close_with_escape(qtbot, window):
    answer = ask(qtbot, window)
    answer._details.setFocus()
    qtbot.keyClick(answer._details, Qt.Key.Key_Space)
    popup = QApplication.activePopupWidget()
    figures = answer.message.statistics
    rows = dict(popup.rows)
    assert rows["Tokens of the answer"] == str(figures["completion_tokens"]) and rows["Seed"] == "0"
    assert rows["Accepted"].endswith(f"{figures['accepted']} of {figures['proposed']}")
    qtbot.keyClick(popup, Qt.Key.Key_Escape)
    assert QApplication.activePopupWidget() is None


def test_thoughts_that_turn_out_to_be_some_only_at_their_end_leave_the_answer(qtbot, body):  # noqa: F811
    for char in "I wonder.\n\nPerhaps.\n</think>\n\nFour.":
        body.feed(char)
    body.finish()
    assert (body.thinking.text.strip(), body.answer) == ("I wonder.\n\nPerhaps.", "Four.")
    assert [widget.toPlainText() for widget in body.widgets] == ["Four."]
