"""Finds words in the open chat: marks every hit, goes from one to the next, and mounts messages as it comes to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit
from shiboken6 import isValid

from app.core.chat import ChatMessage
from app.ui.find_bar import FindBar
from app.ui.message import AnswerMessage, UserMessage
from app.ui.slices import slices
from engine import split_thinking

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

MOST = 2_000  # hits that are told apart


@dataclass(frozen=True, slots=True)
class Hit:
    """One place: in a widget that is mounted, or (``cursor`` None) somewhere in a message that is not."""

    message_id: int
    widget: QTextEdit | QPlainTextEdit | None = None
    cursor: QTextCursor | None = None


class FindInChat(QObject):
    """``bar`` is hidden until ``open``. What is folded away, such as thoughts, is not searched."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._talk, self._transcript = window, window.services.conversation, window.transcript
        self.bar = FindBar()
        self._hits: list[Hit] = []
        self._place = 0
        self._awaited = False  # the hit to go to is not laid out yet
        self._placed = QTimer(self, interval=0, singleShot=True)  # what was laid out just now has its place after this
        self._placed.timeout.connect(self._go_again)
        self._painted: list[QTextEdit | QPlainTextEdit] = []
        self.bar.wanted.connect(lambda _text: self._search())
        self.bar.step_asked.connect(self.step)
        self.bar.closed.connect(self.close)

    def follow(self) -> None:
        """Follows the chat from here on. To be called when the window does: what it mounts is what is searched."""
        self._talk.opened.connect(lambda _chat, _messages: self._again())
        self._talk.branch_changed.connect(lambda _messages: self._again())
        self._talk.answer_ended.connect(lambda _message: self._again())
        slices().settled.connect(self._on_laid_out)

    def open(self) -> None:
        """Shows the bar, ready for another word."""
        self._window.do.show_chat()
        self.bar.show()
        self.bar.field.setFocus()
        self.bar.field.selectAll()
        self._again()

    def close(self) -> None:
        """Hides the bar and every mark."""
        self.bar.stop()
        self._placed.stop()
        self.bar.hide()
        self._hits = []
        self._paint()
        self._window.composer.setFocus()

    def step(self, step: int) -> None:
        """Goes to the next (1) or the previous (-1) hit, around the ends; opens the bar where it is hidden."""
        if self.bar.isHidden():
            self.open()
            return
        self.bar.settle()
        self._collect()
        if self._hits:
            self._place = (self._place + step) % len(self._hits)
            self._go(last=step < 0)

    @property
    def hits(self) -> list[Hit]:
        """Every place where the word is."""
        return self._hits

    def restyle(self) -> None:
        """Follows the palette."""
        self.bar.restyle()
        self._again()

    def _again(self) -> None:
        """The chat has changed: the marks follow, the view stays."""
        if not self.bar.isHidden():
            self._collect()
            self._show()

    def _on_laid_out(self) -> None:
        self._again()
        if self._awaited:
            self._placed.start()

    def _go_again(self) -> None:
        if not self.bar.isHidden() and self._hits:
            self._go(last=False)

    def _search(self) -> None:
        """From the newest hit on, which is the nearest to what is being read at the end."""
        self._collect()
        self._place = max(0, len(self._hits) - 1)
        if self._hits:
            self._go(last=True)
        else:
            self._show()

    def _collect(self) -> None:
        needle = self.bar.field.text()
        self._hits = []
        for message in self._talk.messages if needle else ():
            self._hits += self._in_message(message, needle)
            if len(self._hits) > MOST:
                break
        self._place = min(self._place, max(0, len(self._hits) - 1))

    def _in_message(self, message: ChatMessage, needle: str) -> list[Hit]:
        text = split_thinking(message.content)[1] if message.role == "assistant" else message.content
        written = min(text.lower().count(needle.lower()), MOST)  # as Qt compares them: ß is no ss
        mounted = self._transcript.mounted(message.id)
        if mounted is None:
            return [Hit(message.id)] * written
        hits = self._in_widgets(message.id, mounted, needle)
        if isinstance(mounted, UserMessage) and len(hits) < written and mounted.show_all():
            self._placed.start()
            hits = self._in_widgets(message.id, mounted, needle)
        if slices().waiting:  # what is not laid out yet is found all the same
            hits += [Hit(message.id)] * (written - len(hits))
        return hits

    def _in_widgets(self, message_id: int, mounted: UserMessage | AnswerMessage, needle: str) -> list[Hit]:
        hits: list[Hit] = []
        for widget in mounted.text_widgets():
            cursor = widget.document().find(needle)
            while not cursor.isNull() and len(hits) < MOST:
                hits.append(Hit(message_id, widget, QTextCursor(cursor)))
                cursor = widget.document().find(needle, cursor)
        return hits

    def _go(self, last: bool) -> None:
        hit = self._hits[self._place]
        if hit.widget is None:
            self._transcript.bring(hit.message_id)
            self._collect()
            here = [place for place, other in enumerate(self._hits) if other.message_id == hit.message_id and other.widget]
            if here:
                self._place = here[-1 if last else 0]
        self._show()
        current = self._hits[self._place] if self._hits else None
        self._awaited = current is not None and current.widget is None
        if current is not None and current.widget is not None and current.cursor is not None:
            caret = QTextCursor(current.cursor)
            caret.setPosition(current.cursor.selectionStart())
            current.widget.setTextCursor(caret)
            current.widget.ensureCursorVisible()  # sideways, in a wide block
            self._transcript.show_place(current.widget, current.widget.cursorRect(caret))

    def _show(self) -> None:
        self._paint()
        self.bar.show_count(self._place + 1, len(self._hits))

    def _paint(self) -> None:
        for widget in self._painted:
            if isValid(widget):  # an answer that grows draws parts of it anew
                widget.setExtraSelections([])
        self._painted = []
        for widget, marks in self._marks():
            widget.setExtraSelections(marks)
            self._painted.append(widget)

    def _marks(self) -> Iterator[tuple[QTextEdit | QPlainTextEdit, list[QTextEdit.ExtraSelection]]]:
        by_widget: dict[QTextEdit | QPlainTextEdit, list[QTextEdit.ExtraSelection]] = {}
        for place, hit in enumerate(self._hits):
            if hit.widget is not None and hit.cursor is not None:
                mark, colour = QTextEdit.ExtraSelection(), QColor(hit.widget.palette().highlight().color())
                style = QTextCharFormat()
                colour.setAlphaF(1.0 if place == self._place else 0.35)
                style.setBackground(colour)
                if place == self._place:
                    style.setForeground(hit.widget.palette().highlightedText().color())
                mark.format, mark.cursor = style, hit.cursor
                by_widget.setdefault(hit.widget, []).append(mark)
        yield from by_widget.items()
