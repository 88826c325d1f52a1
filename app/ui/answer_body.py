"""An answer as it streams in: what was thought, folded away, above what is said."""

from __future__ import annotations

from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.core.blocks import Block
from app.ui import theme
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock
from app.ui.markdown_column import MarkdownColumn
from app.ui.thinking import ThinkingBlock
from engine import Split, ThinkingSplitter


class AnswerBody(QWidget):
    """``text`` is all the model wrote, ``answer`` what of it was said, as Markdown."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.text = ""
        self._splitter, self._finished = ThinkingSplitter(), False
        self._text_size, self._column = text_size, MarkdownColumn(text_size)
        self.thinking: ThinkingBlock | None = None  # made with the first thought: most answers have none
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(QMargins())
        self._layout.setSpacing(theme.M)
        self._layout.addWidget(self._column)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)

    @property
    def answer(self) -> str:
        """What was said, without what was thought."""
        return self._column.text

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the answer on show."""
        return self._column.blocks

    @property
    def widgets(self) -> list[ProseBlock | CodeBlock]:
        """One widget a block, in order."""
        return self._column.widgets

    def feed(self, text: str) -> None:
        """Appends text."""
        if text:
            self.text += text
            self._take(self._splitter.feed(text))

    def finish(self) -> None:
        """No more text comes."""
        if not self._finished:
            self._finished = True
            self._take(self._splitter.finish())
            if self.thinking is not None:
                self.thinking.finish(cut=self._splitter.thinking)
            self._column.finish()

    def set_text(self, text: str, finished: bool = True) -> None:
        """Shows ``text`` from the start."""
        self._splitter, self._finished, self.text = ThinkingSplitter(), False, ""
        if self.thinking is not None:
            self.thinking.clear()
        self._column.set_text("", finished=False)
        self.feed(text)
        if finished:
            self.finish()

    def show_thinking_time(self, seconds: float | None) -> None:
        """How long the engine says it thought, in place of what the clock here said."""
        if seconds and self.thinking is not None:
            self.thinking.show_time(seconds)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self._text_size = text_size
        if self.thinking is not None:
            self.thinking.restyle(text_size)
        self._column.restyle(text_size)

    def _take(self, part: Split) -> None:
        if part.thinking or part.moved or self._splitter.thinking or self.thinking is not None:
            self._think(part)
        self._column.feed(part.answer)

    def _think(self, part: Split) -> None:
        if self.thinking is None:
            self.thinking = ThinkingBlock(self._text_size)
            self._layout.insertWidget(0, self.thinking)
        if part.moved:
            self.thinking.feed(self._column.text)
            self._column.set_text("", finished=False)
        self.thinking.feed(part.thinking)
        self.thinking.show_progress(self._splitter.thinking)
