"""The scrolling column of messages: follows a growing answer until the user scrolls away; mounts what is near."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.chat import ChatMessage
from app.ui import theme
from app.ui.message import AnswerMessage, UserMessage

MOUNTED = 40
NEAR_END = 4  # pixels that still count as the end


class Transcript(QScrollArea):
    """The messages of one chat. ``retry_asked`` comes from the last answer's button."""

    retry_asked = Signal()

    def __init__(self, text_size: int = 100, parent: QWidget | None = None):
        super().__init__(parent)
        self._text_size, self._following = text_size, True
        self._older: list[ChatMessage] = []
        self._mounted: dict[int, UserMessage | AnswerMessage] = {}
        self.setAccessibleName("Chat")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._page = QWidget()
        self._column = QWidget(self._page)
        self._messages = QVBoxLayout(self._column)
        self._messages.setContentsMargins(0, theme.L, 0, theme.XL)
        self._messages.setSpacing(theme.L)
        self._earlier = QPushButton("Show earlier messages")
        self._earlier.clicked.connect(self.mount_earlier)
        self._messages.addWidget(self._earlier, 0, Qt.AlignmentFlag.AlignHCenter)
        self._messages.addStretch(1)
        self._page_layout = QVBoxLayout(self._page)
        self._page_layout.setContentsMargins(theme.L, 0, theme.L, 0)
        self._page_layout.addWidget(self._column, 1, Qt.AlignmentFlag.AlignHCenter)
        self._column.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.setWidget(self._page)
        self._to_end = QToolButton(self.viewport())
        self._to_end.setIcon(theme.icon("down"))
        self._to_end.setIconSize(QSize(18, 18))
        self._to_end.setAccessibleName("Jump to the end")
        self._to_end.setToolTip("Jump to the end")
        self._to_end.clicked.connect(self.follow)
        self._to_end.hide()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range_changed)
        bar.valueChanged.connect(self._on_value_changed)
        self._earlier.hide()

    # Content

    def show_messages(self, messages: list[ChatMessage]) -> None:
        """Shows another chat, from its end."""
        for widget in self._mounted.values():
            self._messages.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._mounted = {}
        self._older, recent = messages[:-MOUNTED], messages[-MOUNTED:]
        for message in recent:
            self._mount(message, self._messages.count() - 1)
        self._earlier.setVisible(bool(self._older))
        self._update_retry()
        self.follow()

    def add(self, message: ChatMessage) -> None:
        """Appends a message and goes to it."""
        self._mount(message, self._messages.count() - 1)
        self._update_retry()
        self.follow()

    def grow(self, message_id: int, text: str) -> None:
        """Appends streamed text to an answer, if it is on show."""
        widget = self._mounted.get(message_id)
        if isinstance(widget, AnswerMessage):
            widget.feed(text)

    def end(self, message: ChatMessage) -> None:
        """An answer is over."""
        widget = self._mounted.get(message.id)
        if isinstance(widget, AnswerMessage):
            widget.end(message)
            self._update_retry()

    def mount_earlier(self) -> None:
        """Puts the messages before the first one on show above it; what is being read stays where it is."""
        bar = self.verticalScrollBar()
        from_end = bar.maximum() - bar.value()
        self._following = False
        batch, self._older = self._older[-MOUNTED:], self._older[:-MOUNTED]
        for offset, message in enumerate(batch):
            self._mount(message, 1 + offset)
        self._earlier.setVisible(bool(self._older))
        self._page_layout.activate()
        self._page.adjustSize()
        bar.setValue(bar.maximum() - from_end)

    @property
    def answers(self) -> list[AnswerMessage]:
        """The answers on show, oldest first."""
        answers = [widget for widget in self._mounted.values() if isinstance(widget, AnswerMessage)]
        return sorted(answers, key=lambda answer: answer.message.id)

    @property
    def count(self) -> int:
        """How many messages are mounted."""
        return len(self._mounted)

    # Scrolling

    @property
    def following(self) -> bool:
        """Whether the view stays at the end while an answer grows."""
        return self._following

    def follow(self) -> None:
        """Goes to the end and stays there."""
        self._following = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._to_end.hide()

    def _on_range_changed(self, _minimum: int, maximum: int) -> None:
        if self._following:
            self.verticalScrollBar().setValue(maximum)
        self._place_button()

    def _on_value_changed(self, value: int) -> None:
        # Growth moves the maximum, never the value: only the user, or follow(), gets here away from the end.
        self._following = value >= self.verticalScrollBar().maximum() - NEAR_END
        self._place_button()

    def _place_button(self) -> None:
        hint = self._to_end.sizeHint()
        corner = self.viewport().rect().bottomRight()
        self._to_end.setGeometry(
            corner.x() - hint.width() - theme.L, corner.y() - hint.height() - theme.M, hint.width(), hint.height()
        )
        self._to_end.setVisible(not self._following)
        self._to_end.raise_()

    # Looks

    def set_text_size(self, percent: int) -> None:
        """Scales the content, not the window around it."""
        self._text_size = percent
        self.restyle()

    def restyle(self) -> None:
        """Follows the palette and the text size."""
        for widget in self._mounted.values():
            widget.restyle(self._text_size)
        self._to_end.setIcon(theme.icon("down"))
        self._set_column_width()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_to_end"):
            self.restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_column_width()
        self._place_button()

    def _set_column_width(self) -> None:
        font = theme.scaled_font(self._text_size)
        self.setFont(font)
        widest = self.fontMetrics().averageCharWidth() * theme.COLUMN_CHARACTERS + 2 * theme.M
        self._column.setFixedWidth(max(min(widest, self.viewport().width() - 2 * theme.L), 120))

    def _mount(self, message: ChatMessage, index: int) -> None:
        widget: UserMessage | AnswerMessage
        if message.role == "assistant":
            widget = AnswerMessage(message, self._text_size, self._column)
            widget.retry_asked.connect(self.retry_asked)
        else:
            widget = UserMessage(message, self._text_size, self._column)
        self._messages.insertWidget(index, widget)
        self._mounted[message.id] = widget

    def _update_retry(self) -> None:
        answers = self.answers
        for answer in answers:
            answer.allow_retry(answer is answers[-1])
