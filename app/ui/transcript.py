"""The scrolling column of messages: follows a growing answer until the user scrolls away; mounts what is near."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.core.attachments import is_editable
from app.core.chat import ChatMessage
from app.core.words import tr
from app.ui import theme
from app.ui.anchor import Anchor
from app.ui.end_button import EndButton
from app.ui.mark import Mark
from app.ui.message import AnswerMessage, UserMessage
from app.ui.message_editor import EditInPlace
from app.ui.message_tools import MessageTools

MOUNTED = 40
AT_ONCE, FEW = 12, 2  # of these: what is mounted at once, enough to fill the view, and then in each step of a later turn
NEAR_END = 4  # pixels that still count as the end


class Transcript(QScrollArea):
    """The messages of one branch of a chat, of which a piece is mounted: most often its end.

    Signals, each with a message's id: ``retry_asked(id)`` of an answer; ``switch_asked(id, step)``; ``edit_asked(id)``;
    ``edited(id, text)``; ``branch_asked(id)``; ``delete_asked(id)``. ``filled()``: what is shown of a chat that was
    opened is mounted. ``version_of`` tells (place, count) of a message's versions.
    """

    retry_asked = Signal(int)
    switch_asked = Signal(int, int)
    edit_asked = Signal(int)
    edited = Signal(int, str)
    branch_asked = Signal(int)
    delete_asked = Signal(int)
    filled = Signal()

    def __init__(self, text_size: int = 100, parent: QWidget | None = None):
        super().__init__(parent)
        self.version_of: Callable[[int], tuple[int, int]] = lambda _id: (1, 1)
        self._text_size, self._following = text_size, True
        self._path: list[ChatMessage] = []
        self._first = self._end = 0  # what is mounted of the path
        self._filling = False  # more of its end is still to be mounted
        self._more = QTimer(self, interval=0)
        self._more.timeout.connect(self._fill)
        self._mounted: dict[int, UserMessage | AnswerMessage] = {}
        self._tools: dict[int, MessageTools] = {}
        self._mark: Mark | None = None
        self.setAccessibleName(tr("Chat"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._lay_out()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range_changed)
        bar.valueChanged.connect(self._on_value_changed)

    def _lay_out(self) -> None:
        self._page = QWidget()
        self._column = QWidget(self._page)
        self._messages = QVBoxLayout(self._column)
        self._messages.setContentsMargins(0, theme.L, 0, theme.XL)
        self._messages.setSpacing(theme.L)
        self._earlier, self._later = QPushButton(tr("Show earlier messages")), QPushButton(tr("Show later messages"))
        self._earlier.clicked.connect(self.mount_earlier)
        self._later.clicked.connect(self.mount_later)
        for button in (self._earlier, self._later):
            self._messages.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            button.hide()
        self._messages.addStretch(1)
        self._page_layout = QVBoxLayout(self._page)
        self._page_layout.setContentsMargins(theme.L, 0, theme.L, 0)
        self._page_layout.addWidget(self._column, 1, Qt.AlignmentFlag.AlignHCenter)
        self._column.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.setWidget(self._page)
        self._anchor = Anchor(self, self._page)
        self.editing = EditInPlace(self, self._messages, self._settle_layout)
        self._to_end = EndButton(self.viewport())
        self._to_end.clicked.connect(self.follow)

    # Content

    def show_messages(self, messages: list[ChatMessage]) -> None:
        """Shows another chat, from its end."""
        self._keep(0)
        self._path = list(messages)
        self._first = self._end = max(0, len(messages) - AT_ONCE)
        self._filling = self._first > 0
        self._mount_to(len(messages))
        self.follow()
        self._more.start()

    def show_branch(self, messages: list[ChatMessage]) -> None:
        """Shows another branch of the same chat: what both share stays mounted, and where it is."""
        same = 0
        for old, new in zip(self._path, messages, strict=False):
            if old.id != new.id:
                break
            same += 1
        if same <= self._first:
            self.show_messages(messages)
            return
        self._following = False
        self._keep(same)
        self._path = list(messages)
        self._mount_to(min(self._end + MOUNTED, len(messages)))

    def reveal(self, message_id: int) -> None:
        """Mounts what is around a message, scrolls to it and marks it."""
        if not self.bring(message_id):
            return
        self.clear_mark()
        self._mark = Mark(self._mounted[message_id])
        self._hold(self._mounted[message_id], theme.XL)

    def bring(self, message_id: int) -> bool:
        """Mounts a message with what is around it, where it is not yet; False: it is not on this branch."""
        place = next((index for index, message in enumerate(self._path) if message.id == message_id), None)
        if place is None:
            return False
        if self._filling and place < self._first and place >= len(self._path) - MOUNTED:
            self._mount_before(self._first - place)  # a moment before its time
        elif not self._first <= place < self._end:
            self._keep(0)
            self._first = self._end = max(0, place - MOUNTED // 2)
            self._mount_to(min(place + MOUNTED // 2, len(self._path)))
        self._settle_layout()
        return True

    def mounted(self, message_id: int) -> UserMessage | AnswerMessage | None:
        """The widget of a message, None where it is not mounted."""
        return self._mounted.get(message_id)

    def show_place(self, widget: QWidget, rect: QRect) -> None:
        """Scrolls a place inside a message into view, where it stays; the view no longer follows the end."""
        self._settle_layout()
        self._following = False
        centre = widget.mapTo(self._page, rect.center())
        self.ensureVisible(centre.x(), centre.y(), 0, self.viewport().height() // 3)
        self._hold(widget, widget.mapTo(self.viewport(), QPoint()).y())

    def clear_mark(self) -> None:
        """Takes the mark off what was searched for."""
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.hide()
            mark.deleteLater()

    def _hold(self, widget: QWidget, height: int) -> None:
        self._anchor.hold(widget, height)
        self._following = False
        self._place_button()

    def add(self, message: ChatMessage) -> None:
        """Appends a message and goes to it."""
        self.clear_mark()
        at_end = self._end == len(self._path)
        self._path.append(message)
        if not at_end:
            self.show_messages(self._as_grown())
            return
        self._mount_to(len(self._path))
        self.follow()
        if len(self._mounted) > 2 * MOUNTED and self.editing.editor is None:  # or the editor's message would go
            self._unmount(self._path[self._first : -MOUNTED])
            self._first = len(self._path) - MOUNTED
            self._show_borders()

    def grow(self, message_id: int, text: str) -> None:
        """Appends streamed text to an answer, mounted or not."""
        widget = self._mounted.get(message_id)
        if isinstance(widget, AnswerMessage):
            widget.feed(text)
        else:
            self._path = [
                replace(message, content=message.content + text) if message.id == message_id else message for message in self._path
            ]

    def end(self, message: ChatMessage) -> None:
        """An answer is over."""
        self._path = [message if known.id == message.id else known for known in self._path]
        widget = self._mounted.get(message.id)
        if isinstance(widget, AnswerMessage):
            widget.end(message)
            widget.allow_retry(True)

    def mount_earlier(self) -> None:
        """Puts the messages before the first one on show above it; what is being read stays where it is."""
        self._following = self._filling = False
        self._anchor.let_go()
        self._mount_before(MOUNTED)

    def mount_later(self) -> None:
        """Puts the messages after the last one on show below it."""
        self._following = False
        self._mount_to(min(self._end + MOUNTED, len(self._path)))

    @property
    def answers(self) -> list[AnswerMessage]:
        """The answers on show, oldest first."""
        answers = [widget for widget in self._mounted.values() if isinstance(widget, AnswerMessage)]
        return sorted(answers, key=lambda answer: answer.message.id)

    @property
    def count(self) -> int:
        """How many messages are mounted."""
        return len(self._mounted)

    # Editing

    def edit(self, message_id: int) -> bool:
        """Opens an editor in the place of a message of the user's. False: it is too long to be laid out."""
        if message_id not in self._mounted:
            self.bring(message_id)
        widget = self._mounted.get(message_id)
        if not isinstance(widget, UserMessage):
            return True
        if not is_editable(widget.message.content):
            return False
        self.editing.open(widget, widget.message, self._text_size, lambda edited: self.edited.emit(message_id, edited))
        return True

    def current_id(self) -> int | None:
        """The message that has the keyboard's focus."""
        focus = QApplication.focusWidget()
        for message_id, widget in self._mounted.items():
            if focus is not None and widget.isAncestorOf(focus):
                return message_id
        return None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self.clear_mark()
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.clear_mark()
        super().mousePressEvent(event)

    # Scrolling

    @property
    def following(self) -> bool:
        """Whether the view stays at the end while an answer grows."""
        return self._following

    def follow(self) -> None:
        """Goes to the end and stays there."""
        if self._end < len(self._path):
            self.show_messages(self._as_grown())
            return
        self._following = True
        self._anchor.let_go()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._to_end.hide()

    def _on_range_changed(self, _minimum: int, maximum: int) -> None:
        if self._following:
            self.verticalScrollBar().setValue(maximum)
        elif self._anchor.restore():
            self._following = False
        self._place_button()

    def _on_value_changed(self, value: int) -> None:
        if self._anchor.moving:
            return
        self._anchor.let_go()
        # Growth moves the maximum, never the value: only the user, or follow(), gets here away from the end.
        at_end = self._end == len(self._path)
        self._following = at_end and value >= self.verticalScrollBar().maximum() - NEAR_END
        self._place_button()

    def _place_button(self) -> None:
        self._to_end.place(bool(self._mounted) and not self._following and self.verticalScrollBar().maximum() > 0)

    # Looks

    def set_text_size(self, percent: int) -> None:
        """Scales the content, not the window around it."""
        self._text_size = percent
        self.restyle()

    def restyle(self) -> None:
        """Follows the palette and the text size."""
        for widget in (*self._mounted.values(), *self._tools.values()):
            widget.restyle(self._text_size)
        self._to_end.restyle()
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
        self._column.setFixedWidth(max(min(theme.column_width(font), self.viewport().width() - 2 * theme.L), 120))

    # Mounting

    def _mount_to(self, end: int) -> None:
        """Mounts the path up to ``end`` below what is mounted."""
        place = self._messages.indexOf(self._later)
        for message in reversed(self._path[self._end : end]):  # the end is read first, so it is laid out first
            self._mount(message, place)
        self._end = end
        self._show_borders()

    def _mount_before(self, count: int) -> None:
        """Mounts up to ``count`` messages above what is mounted; the view stays where it is, or at the end."""
        start, top = max(0, self._first - count), self._mounted[self._path[self._first].id]
        height = top.mapTo(self.viewport(), top.rect().topLeft()).y()
        for message in reversed(self._path[start : self._first]):
            self._mount(message, 1)
        self._first = start
        self._show_borders()
        self._settle_layout()
        if not self._following and not self._anchor.holds:
            self._hold(top, height)

    def _fill(self) -> None:
        """Mounts a few messages more of the end of a chat that was opened a moment ago."""
        missing = self._first - max(0, len(self._path) - MOUNTED)
        self._filling = self._filling and missing > 0 and self._end == len(self._path)
        if self._filling:
            self._mount_before(min(FEW, missing))
        else:
            self._more.stop()
            self._show_borders()
            self.filled.emit()

    def _mount(self, message: ChatMessage, index: int) -> None:
        widget: UserMessage | AnswerMessage
        if message.role == "assistant":
            widget = AnswerMessage(message, self._text_size, self._column)
            widget.allow_retry(True)
            widget.retry_asked.connect(lambda: self.retry_asked.emit(message.id))
        else:
            widget = UserMessage(message, self._text_size, self._column)
        tools = MessageTools(message.role == "user", widget)
        tools.switch_asked.connect(lambda step: self.switch_asked.emit(message.id, step))
        tools.edit_asked.connect(lambda: self.edit_asked.emit(message.id))
        tools.branch_asked.connect(lambda: self.branch_asked.emit(message.id))
        tools.delete_asked.connect(lambda: self.delete_asked.emit(message.id))
        tools.restyle(self._text_size)
        widget.tools.addWidget(tools)
        self._messages.insertWidget(index, widget)
        widget.show()  # now, and not with the next event: what is hidden has no place in the layout
        self._mounted[message.id], self._tools[message.id] = widget, tools

    def _keep(self, count: int) -> None:
        """Leaves only what is mounted of the first ``count`` messages of the path."""
        self.editing.close()
        self.clear_mark()
        self._unmount(self._path[max(count, self._first) : self._end])
        self._end = max(min(self._end, count), self._first)

    def _unmount(self, messages: list[ChatMessage]) -> None:
        self._anchor.let_go()
        self._path = self._as_grown()  # what was written so far of an answer is nowhere else here
        for message in messages:
            widget = self._mounted.pop(message.id)
            del self._tools[message.id]
            self._messages.removeWidget(widget)
            widget.hide()
            widget.deleteLater()

    def _as_grown(self) -> list[ChatMessage]:
        """The path with the text of an answer that is being written."""
        grown = {answer.message.id: answer.body.text for answer in self.answers if answer.message.state == "streaming"}
        return [replace(message, content=grown[message.id]) if message.id in grown else message for message in self._path]

    def _show_borders(self) -> None:
        self._earlier.setVisible(self._first > 0 and not self._filling)
        self._later.setVisible(self._end < len(self._path))
        for message_id, tools in self._tools.items():
            tools.show_version(*self.version_of(message_id))

    def _settle_layout(self) -> None:
        self._page_layout.activate()
        self._page.adjustSize()
