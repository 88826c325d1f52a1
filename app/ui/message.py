"""One message of the transcript: what the user wrote as plain text, or an answer as a column of block widgets."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QFont, QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QTextEdit, QToolButton, QVBoxLayout, QWidget

from app.core.answer_details import answer_details, note
from app.core.chat import ChatMessage, State
from app.core.figures import statistics_line
from app.core.sanitize import cut_text
from app.core.words import mark, tr
from app.ui import theme
from app.ui.answer_body import AnswerBody
from app.ui.attachment_chips import SentAttachments
from app.ui.blocks import TextBlock
from app.ui.code_block import CodeBlock
from app.ui.details_popup import DetailsPopup
from app.ui.labels import ElidedLabel
from app.ui.slices import slices

SHOWN_OF_USER = 2_000  # characters of a long pasted message laid out at once
PIECE = 4_000  # characters of it that one widget holds
NOTES: dict[State, str] = {
    "stopped": mark("Stopped"),
    "interrupted": mark("Interrupted: Slipstream ended before the answer did"),
    "failed": mark("Failed before the end"),
}


class UserMessage(QWidget):
    """The user's own words as plain text, never as Markdown; a very long message is shown in part until asked for."""

    def __init__(self, message: ChatMessage, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.message = message
        self._label = QLabel(tr("You"))
        self._text_size = text_size
        self._texts: list[TextBlock] = []
        self._more = QToolButton(autoRaise=True)
        self._more.clicked.connect(self.show_all)
        self._more.setVisible(len(message.content) > SHOWN_OF_USER)
        self._more.setText(tr("Show all {count} characters", count=len(message.content)))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.M, theme.S + 2)
        layout.setSpacing(theme.XS)
        self.tools = QHBoxLayout()  # the transcript puts its own buttons at the end
        self.tools.addWidget(self._label)
        self.tools.addStretch(1)
        layout.addLayout(self.tools)
        self.attachments = SentAttachments(message.attachments, text_size)
        layout.addWidget(self.attachments)
        self._pieces = QVBoxLayout()
        self._pieces.setSpacing(0)
        layout.addLayout(self._pieces)
        layout.addWidget(self._more)
        if message.content:
            self._add_text(message.content[:SHOWN_OF_USER])
        self.restyle(text_size)

    def text_widgets(self) -> list[QTextEdit | QPlainTextEdit]:
        """What holds the text on show."""
        return [*self._texts]

    def show_all(self) -> bool:
        """Lays the whole message out, a very long one over several turns. False: it was already."""
        if self._more.isHidden():
            return False
        self._more.hide()
        first, *rest = cut_text(self.message.content, PIECE)
        self._texts[0].show_plain(first)
        self._texts[0].fit()
        for piece in rest:
            slices().run(self, len(piece), partial(self._add_text, piece))
        return True

    def _add_text(self, text: str) -> None:
        block = TextBlock(tr("Your message"), self._text_size, self)
        block.resize(self._pieces.contentsRect().width(), 1)
        self._pieces.addWidget(block)
        block.show_plain(text)
        block.fit()
        self._texts.append(block)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self._label.setFont(theme.scaled_font(text_size * 85 // 100, QFont.Weight.DemiBold))
        theme.tint(self._label, theme.current().quiet)
        if text_size != self._text_size:
            self._text_size = text_size
            for text in self._texts:
                slices().run(text, text.cost, partial(text.set_text_size, text_size))
        self.attachments.restyle(text_size)
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
        self._waiting = QLabel(tr("Working …"))
        self._line = ElidedLabel()  # the details beside it can be copied
        self._line.setAccessibleName(tr("Answer statistics"))
        self._note = QLabel()
        self._copy = self._button("copy", tr("Copy answer"), self.copy_answer)
        self._retry = self._button("retry", tr("Answer again"), self.retry_asked.emit)
        self._details = self._button("info", tr("Details of this answer"), self.show_details)
        self.tools = footer = QHBoxLayout()  # the transcript puts its own buttons at the end
        footer.setSpacing(theme.S)
        footer.addWidget(self._note)
        footer.addWidget(self._line, 1)
        footer.addStretch()
        footer.addWidget(self._details)
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
        """Puts the answer's Markdown on the clipboard, without what was thought."""
        QGuiApplication.clipboard().setText(self.body.answer)

    def text_widgets(self) -> list[QTextEdit | QPlainTextEdit]:
        """What holds the text on show, in order."""
        return [widget.edit if isinstance(widget, CodeBlock) else widget for widget in self.body.widgets]

    def show_details(self) -> None:
        """Opens all figures of the answer."""
        rows, why = answer_details(self.message.statistics), note(self.message.statistics)
        DetailsPopup(tr("Details of this answer"), rows, why, self).show_at(self._details, above=True)

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
        self._details.setIcon(theme.icon("info", colours.quiet))

    def _show_state(self) -> None:
        streaming = self.message.state == "streaming"
        self._waiting.setVisible(streaming and not self.body.text)
        self.body.show_thinking_time((self.message.statistics or {}).get("thinking_s"))
        self._line.setText(statistics_line(self.message.statistics))
        self._note.setText(tr(NOTES[self.message.state]) if self.message.state in NOTES else "")
        self._line.setVisible(bool(self._line.text()))
        self._note.setVisible(bool(self._note.text()))
        self._details.setVisible(bool(self._line.text()))
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
