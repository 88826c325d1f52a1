"""One message of the transcript: what the user wrote as plain text, or an answer as a column of block widgets."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QSize, Qt, Signal
from PySide6.QtGui import QFont, QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.blocks import Block, BlockSplitter
from app.core.chat import ChatMessage, State
from app.core.figures import statistics_line
from app.core.sanitize import break_long_runs
from app.ui import theme
from app.ui.blocks import CodeBlock, ProseBlock, TextBlock

SHOWN_OF_USER = 2_000  # characters of a long pasted message laid out at once
NOTES: dict[State, str] = {
    "stopped": "Stopped",
    "interrupted": "Interrupted: Slipstream ended before the answer did",
    "failed": "Failed before the end",
}


class AnswerBody(QWidget):
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


class UserMessage(QWidget):
    """The user's own words as plain text, never as Markdown; a very long message is shown in part until asked for."""

    def __init__(self, message: ChatMessage, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.message = message
        self._label = QLabel("You")
        self._text = TextBlock("Your message", text_size)
        self._more = QToolButton(autoRaise=True)
        self._more.clicked.connect(self.show_all)
        self._more.setVisible(len(message.content) > SHOWN_OF_USER)
        self._more.setText(f"Show all {len(message.content):,} characters")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.M, theme.S + 2)
        layout.setSpacing(theme.XS)
        self.tools = QHBoxLayout()  # the transcript puts its own buttons at the end
        self.tools.addWidget(self._label)
        self.tools.addStretch(1)
        layout.addLayout(self.tools)
        layout.addWidget(self._text)
        layout.addWidget(self._more)
        self._text.setPlainText(break_long_runs(message.content[:SHOWN_OF_USER]))
        self.restyle(text_size)

    def show_all(self) -> None:
        """Lays the whole message out."""
        self._more.hide()
        self._text.setPlainText(break_long_runs(self.message.content))
        self._text.fit()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self._label.setFont(theme.scaled_font(text_size * 85 // 100, QFont.Weight.DemiBold))
        theme.tint(self._label, theme.current().quiet)
        self._text.set_text_size(text_size)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme.paint_card(self)


class AnswerMessage(QWidget):
    """An answer: its blocks, then one line of statistics and what ended it. ``retry_asked`` comes from its button."""

    retry_asked = Signal()

    def __init__(self, message: ChatMessage, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.message = message
        self.body = AnswerBody(text_size)
        self._waiting = QLabel("Working …")
        self._line = QLabel()
        self._line.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._line.setAccessibleName("Answer statistics")
        self._note = QLabel()
        self._copy = self._button("copy", "Copy answer", self.copy_answer)
        self._retry = self._button("retry", "Answer again", self.retry_asked.emit)
        self.tools = footer = QHBoxLayout()  # the transcript puts its own buttons at the end
        footer.setSpacing(theme.S)
        for label in (self._note, self._line):
            footer.addWidget(label)
        footer.addStretch(1)
        footer.addWidget(self._copy)
        footer.addWidget(self._retry)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, 0, theme.M, 0)
        layout.setSpacing(theme.S)
        layout.addWidget(self.body)
        layout.addWidget(self._waiting)
        layout.addLayout(footer)
        if message.state == "streaming":
            self.body.feed(message.content)
            self._show_state()
        else:
            self.body.set_text(message.content)
            self._show_state()
        self.restyle(text_size)

    def feed(self, text: str) -> None:
        """Appends streamed text."""
        self.body.feed(text)
        self._waiting.hide()

    def end(self, message: ChatMessage) -> None:
        """The answer is over; the blocks are kept where the text is what was streamed."""
        self.message = message
        if self.body.text == message.content:
            self.body.finish()
        else:
            self.body.set_text(message.content)
        self._show_state()

    def allow_retry(self, allowed: bool) -> None:
        """Whether the button to ask again is there."""
        self._retry.setVisible(allowed and self.message.state != "streaming")

    def copy_answer(self) -> None:
        """Puts the answer's Markdown on the clipboard."""
        QGuiApplication.clipboard().setText(self.body.text)

    @property
    def statistics_text(self) -> str:
        """The line under the answer, as shown."""
        return self._line.text()

    @property
    def note_text(self) -> str:
        """What ended the answer early, as shown; "" where nothing did."""
        return self._note.text()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        colours = theme.current()
        self.body.restyle(text_size)
        for label in (self._line, self._note, self._waiting):
            label.setFont(theme.figure_font(text_size * 85 // 100))
        theme.tint(self._line, colours.quiet)
        theme.tint(self._waiting, colours.quiet)
        theme.tint(self._note, colours.warning)
        self._copy.setIcon(theme.icon("copy", colours.quiet))
        self._retry.setIcon(theme.icon("retry", colours.quiet))

    def _show_state(self) -> None:
        streaming = self.message.state == "streaming"
        self._waiting.setVisible(streaming and not self.body.text)
        self._line.setText(statistics_line(self.message.statistics))
        self._note.setText(NOTES.get(self.message.state, ""))
        self._line.setVisible(bool(self._line.text()))
        self._note.setVisible(bool(self._note.text()))
        self._copy.setVisible(not streaming and bool(self.body.text))
        self._retry.setVisible(False)

    def _button(self, icon: str, name: str, run) -> QToolButton:
        button = QToolButton(autoRaise=True)
        button.setIcon(theme.icon(icon))
        button.setIconSize(QSize(14, 14))
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.clicked.connect(run)
        return button
