"""Texts of chats, files and models are shown as they are: no HTML in tool tips and labels, no keys marked by ampersands."""

from __future__ import annotations

import pytest
from PySide6 import QtGui
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.core.arms import DFLASH, PLAIN
from app.core.blocks import Block
from app.core.chat import Attachment
from app.core.compare import ArmRecorder, Comparison
from app.core.model_rows import ModelRow
from app.ui.attachment_chips import AttachmentChip, SentAttachments
from app.ui.banner import Banner
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock
from app.ui.compare_view import CompareView
from app.ui.labels import ElidedLabel
from app.ui.models.row_list import RowModel
from engine import Finished, Statistics
from tests.gui.conftest import wait_ready

ONE_TOKEN = Statistics("dflash", 20, 0, 1, 0.1, 0.1, 0, 0, 0, 0.0, 0.0, 0, None)
HTML = "<b>not bold</b> <img src='x.png'> &amp; 1 < 2\n  second"


def as_shown(tip: str) -> str:
    """What a tool tip shows of its text."""
    document = QtGui.QTextDocument()
    if QtGui.Qt.mightBeRichText(tip):
        document.setHtml(tip)
    else:
        document.setPlainText(tip)
    return document.toPlainText()


def test_a_chat_s_title_is_shown_as_it_is(qtbot, window):
    window.composer.set_text("<b>What</b> is this?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    chats = window.sidebar.chats.rows
    place = next(index for index in range(chats.rowCount()) if chats.rows[index].chat_id is not None)
    assert as_shown(chats.data(chats.index(place), Qt.ItemDataRole.ToolTipRole)) == "<b>What</b> is this?"
    assert as_shown(window.title.toolTip()) == "<b>What</b> is this?"


def test_tool_tips_show_html_as_text(qtbot):
    label = ElidedLabel()
    label.setText(HTML)
    chip = AttachmentChip(Attachment("page.html", HTML))
    rows = RowModel()
    rows.fill([ModelRow("x", "hub", HTML)])
    for tip in (label.toolTip(), chip.toolTip(), rows.data(rows.index(0), Qt.ItemDataRole.ToolTipRole)):
        assert as_shown(tip) == HTML
    for widget in (label, chip):
        qtbot.addWidget(widget)


def test_a_formula_s_tip_is_its_source(qtbot):
    block = ProseBlock(100)
    qtbot.addWidget(block)
    block.set_block(Block("prose", "So $x<b>y$ holds"))
    found = block.document().find("x")
    assert as_shown(found.charFormat().toolTip()) == "$x<b>y$"


def test_the_tag_of_a_fence_is_no_markup(qtbot):
    block = CodeBlock(100)
    qtbot.addWidget(block)
    block.set_block(Block("code", "x", "<h1>python"))
    label = next(each for each in block.findChildren(QLabel) if each.text() == "<h1>python")
    assert label.textFormat() is Qt.TextFormat.PlainText


def test_a_verdict_names_words_that_are_tags(qtbot):
    view = CompareView()
    qtbot.addWidget(view)
    left, right = ArmRecorder(PLAIN), ArmRecorder(DFLASH)
    left.feed(Finished("stop", "<b>", (1,), ONE_TOKEN))
    right.feed(Finished("stop", "<i>", (2,), ONE_TOKEN))
    view.show_whole(Comparison("?", left, right))
    assert "<b>" in view.verdict.text() and view.verdict.textFormat() is Qt.TextFormat.PlainText


@pytest.mark.parametrize("name", ["R&D", "a && b"])
def test_an_ampersand_in_a_name_is_shown(qtbot, window, name):
    chat = window.services.store.create_chat("Costs", folder=name)
    window.fill_chats()
    action = window.sidebar.chats.move_menu(chat.id).actions()[0]
    banner, files = Banner(), SentAttachments([Attachment(name, "x")], 100)
    banner.show_message("No model", f"Load {name}")
    for widget in (banner, files):
        qtbot.addWidget(widget)
    for text in (action.text(), banner.action.text(), files.buttons[0].text()):
        assert name in text.replace("&&", "&") and text.replace("&&", "").count("&") == 0
