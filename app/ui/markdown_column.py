"""Markdown as a column of block widgets that grows while its text streams in."""

from __future__ import annotations

from time import monotonic

from PySide6.QtCore import QMargins, QTimer
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.core.blocks import Block, BlockSplitter
from app.ui import theme
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock

SLOW_S = 0.03
REST, LONGEST_REST_MS = 4, 1_000


class MarkdownColumn(QWidget):
    """Streaming Markdown as block widgets; only the last block is ever drawn again, and a large one that takes long (a table of
    hundreds of rows) the less often, so that the window is not busy with it alone.
    """

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._text_size, self._splitter = text_size, BlockSplitter()
        self._widgets: list[ProseBlock | CodeBlock] = []
        self._settled = 0
        self.text, self._taken = "", 0
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._take)
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
            if not self._rest.isActive():
                self._take()

    def finish(self) -> None:
        """No more text comes: an open fence is closed and coloured."""
        self._rest.stop()
        self._feed_splitter()
        self._splitter.finish()
        self._sync()

    def set_text(self, text: str, finished: bool = True) -> None:
        """Shows ``text`` from the start."""
        self._rest.stop()
        self._splitter, self._settled, self.text, self._taken = BlockSplitter(), 0, "", 0
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

    def _take(self) -> None:
        begun = monotonic()
        self._feed_splitter()
        self._sync()
        spent = monotonic() - begun
        if spent > SLOW_S:
            self._rest.start(min(round(REST * spent * 1_000), LONGEST_REST_MS))

    def _feed_splitter(self) -> None:
        if self._taken < len(self.text):
            self._splitter.feed(self.text[self._taken :])
            self._taken = len(self.text)

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
