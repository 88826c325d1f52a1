"""Markdown as a column of block widgets that grows while its text streams in."""

from __future__ import annotations

from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.core.blocks import Block, BlockSplitter
from app.ui import theme
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock


class MarkdownColumn(QWidget):
    """Streaming Markdown as block widgets; only the last block is ever drawn again."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._text_size, self._splitter = text_size, BlockSplitter()
        self._widgets: list[ProseBlock | CodeBlock] = []
        self._settled = 0
        self.text = ""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(QMargins())
        self._layout.setSpacing(theme.M)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)

    @property
    def blocks(self) -> list[Block]:
        """The blocks on show."""
        return self._splitter.blocks

    @property
    def widgets(self) -> list[ProseBlock | CodeBlock]:
        """One widget a block, in order."""
        return self._widgets

    def feed(self, text: str) -> None:
        """Appends text."""
        if text:
            self.text += text
            self._splitter.feed(text)
            self._sync()

    def finish(self) -> None:
        """No more text comes: an open fence is closed and coloured."""
        self._splitter.finish()
        self._sync()

    def set_text(self, text: str, finished: bool = True) -> None:
        """Shows ``text`` from the start."""
        self._splitter, self._settled, self.text = BlockSplitter(), 0, ""
        for widget in self._widgets:
            self._drop(widget)
        self._widgets = []
        self.feed(text)
        if finished:
            self.finish()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self._text_size = text_size
        for widget in self._widgets:
            widget.restyle(text_size)

    def _sync(self) -> None:
        blocks = self._splitter.blocks
        for index in range(self._settled, len(blocks)):
            self._show(index, blocks[index])
        for widget in self._widgets[len(blocks) :]:
            self._drop(widget)
        del self._widgets[len(blocks) :]
        self._settled = self._splitter.committed

    def _show(self, index: int, block: Block) -> None:
        wanted = CodeBlock if block.kind == "code" else ProseBlock
        if index < len(self._widgets) and type(self._widgets[index]) is not wanted:
            self._drop(self._widgets[index])
            self._widgets[index] = wanted(self._text_size, self)
            self._layout.insertWidget(index, self._widgets[index])
        elif index == len(self._widgets):
            self._widgets.append(wanted(self._text_size, self))
            self._layout.addWidget(self._widgets[index])
        self._widgets[index].set_block(block)

    def _drop(self, widget: QWidget) -> None:
        self._layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
