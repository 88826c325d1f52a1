"""Markdown as a column of block widgets that grows while its text streams in, a long one over several turns."""

from __future__ import annotations

from functools import partial
from time import monotonic

from PySide6.QtCore import QMargins, QTimer
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.core.blocks import Block, BlockSplitter
from app.ui import theme
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock
from app.ui.slices import cost, slices

STEP = 2_000  # characters taken at once
SLOW_S = 0.03
REST, LONGEST_REST_MS = 4, 1_000


class MarkdownColumn(QWidget):
    """Streaming Markdown as block widgets; only the last block is ever drawn again, and one that takes long the less often, so
    that the window is not busy with it alone. More text at once than a turn has time for follows in later ones.
    """

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._text_size, self._splitter = text_size, BlockSplitter()
        self._widgets: list[ProseBlock | CodeBlock] = []
        self._look = (text_size, theme.current())
        self._settled = 0
        self.text, self._taken = "", 0
        self._ended = self._asked = False
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._ask)
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
                self._ask()

    def finish(self) -> None:
        """No more text comes: an open fence is closed and coloured."""
        self._rest.stop()
        self._ended = True
        self._ask()

    def set_text(self, text: str, finished: bool = True) -> None:
        """Shows ``text`` from the start."""
        self._rest.stop()
        self._splitter, self._settled, self.text, self._taken, self._ended = BlockSplitter(), 0, "", 0, False
        for widget in self._widgets:
            self._drop(widget)
        self._widgets = []
        self.feed(text)
        if finished:
            self.finish()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size; where neither changed, nothing is done."""
        look, self._text_size = (text_size, theme.current()), text_size
        if look == self._look:
            return
        self._look = look
        for widget in self._widgets:
            slices().run(widget, widget.cost, partial(widget.restyle, text_size))

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            slices().run(self, cost(self._next()), self._take)

    def _next(self) -> str:
        return self.text[self._taken : self._taken + STEP]

    def _take(self) -> None:
        self._asked = False
        begun, piece = monotonic(), self._next()
        if piece:
            self._splitter.feed(piece)
            self._taken += len(piece)
        more = self._taken < len(self.text)
        if self._ended and not more:
            self._splitter.finish()
        self._sync(with_tail=not more)
        spent = monotonic() - begun
        if more:
            self._ask()
        elif spent > SLOW_S and not self._ended:
            self._rest.start(min(round(REST * spent * 1_000), LONGEST_REST_MS))

    def _sync(self, with_tail: bool) -> None:
        """Shows what was taken; the block that is still written only ``with_tail``, since what follows draws it again."""
        committed = self._splitter.committed
        blocks = self._splitter.blocks if with_tail else self._splitter.blocks[:committed]
        for index in range(self._settled, len(blocks)):
            self._show(index, blocks[index])
        if with_tail:
            for widget in self._widgets[len(blocks) :]:
                self._drop(widget)
            del self._widgets[len(blocks) :]
        self._settled = committed

    def _show(self, index: int, block: Block) -> None:
        wanted = CodeBlock if block.kind == "code" else ProseBlock
        if index < len(self._widgets) and type(self._widgets[index]) is not wanted:
            self._drop(self._widgets[index])
            self._widgets[index] = self._made(wanted, index)
        elif index == len(self._widgets):
            self._widgets.append(self._made(wanted, index))
        self._widgets[index].set_block(block)

    def _made(self, kind: type[ProseBlock] | type[CodeBlock], index: int) -> ProseBlock | CodeBlock:
        widget = kind(self._text_size, self)
        widget.resize(self.contentsRect().width(), 1)  # as wide as it will be, so that it is not laid out twice
        self._layout.insertWidget(index, widget)
        return widget

    def _drop(self, widget: QWidget) -> None:
        self._layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
