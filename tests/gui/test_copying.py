"""What is copied out of a chat is what was written, without anything that the layout needed."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from app.core.blocks import Block
from app.core.chat import Attachment, ChatMessage
from app.core.sanitize import BREAK
from app.ui.attachment_chips import SentAttachments
from app.ui.blocks import ProseBlock, TextBlock
from app.ui.code_block import CodeBlock
from app.ui.message import UserMessage

LONG = "a0" * 1_500  # no editor lays out a run of so many characters without help


def prose(text):
    block = ProseBlock(100)
    block.set_block(Block("prose", text))
    return block, block


def code(text):
    block = CodeBlock(100)
    block.set_block(Block("code", text, "js"))
    return block, block.edit


def question(text):
    message = UserMessage(ChatMessage(1, 1, "user", text, "sent", 0.0), 100)
    message.show_all()
    return message, message.text_widgets()[0]


def file(text):
    files = SentAttachments([Attachment("a.txt", text)], 100)
    files.buttons[0].click()
    return files, files.findChild(TextBlock)


@pytest.mark.parametrize("made", [prose, code, question])
@pytest.mark.parametrize("text", [LONG, f"short, then {LONG}", f"{LONG} and $x^2$"])
def test_a_long_run_is_copied_without_the_spaces_that_only_the_layout_needs(qtbot, made, text):
    owner, widget = made(text)
    qtbot.addWidget(owner)
    assert BREAK in widget.toPlainText(), "nothing to take out: the test tests nothing"
    widget.selectAll()
    widget.copy()
    assert QGuiApplication.clipboard().text() == text
    assert BREAK not in QGuiApplication.clipboard().mimeData().html()


@pytest.mark.parametrize("made", [prose, code, question, file])
def test_zero_width_spaces_of_the_text_itself_are_copied(qtbot, made):
    owner, widget = made(f"ka{BREAK}kha")  # as words are parted in Khmer
    qtbot.addWidget(owner)
    widget.selectAll()
    widget.copy()
    assert QGuiApplication.clipboard().text() == f"ka{BREAK}kha"
