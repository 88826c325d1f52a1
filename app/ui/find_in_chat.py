"""Finds words in the open chat: marks every hit, goes from one to the next, and mounts messages as it comes to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit
from shiboken6 import isValid

from app.core.chat import ChatMessage
from app.ui.find_bar import FindBar
from app.ui.message import AnswerMessage, UserMessage
from app.ui.slices import SLICE_S, slices
from engine import split_thinking

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

MARKED = 2_000  # hits after which no further message is marked: each costs the layout


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
        self._near: int | None = None  # the message of the hit gone to
        self._needle = ""
        self._counts: dict[int, tuple[str, int]] = {}  # hits of messages, with the text they were counted in
        self._to_count: Iterator[ChatMessage] = iter(())
        self._goes = False  # to the newest hit, once all are counted
        self._counting = QTimer(self, interval=0)
        self._counting.timeout.connect(self._count_some)
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
        self._transcript.filled.connect(self._on_laid_out)

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
        self._counting.stop()
        self.bar.hide()
        self._hits, self._counts = [], {}
        self._paint()
        self._window.composer.setFocus()

    def step(self, step: int) -> None:
        """Goes to the next (1) or the previous (-1) hit, around the ends; opens the bar where it is hidden."""
        if self.bar.isHidden():
            self.open()
            return
        self.bar.settle()
        if self._counting.isActive():
            return  # it goes to the newest hit in a moment
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
            self._count()

    def _on_laid_out(self) -> None:
        self._again()
        if self._awaited:
            self._placed.start()

    def _go_again(self) -> None:
        if not self.bar.isHidden() and self._hits:
            self._go(last=False)

    def _search(self) -> None:
        """From the newest hit on, which is the nearest to what is being read at the end."""
        self._goes, self._near = True, None
        self._count()

    # Counting and placing

    def _count(self) -> None:
        """Counts the hits of every message that has changed, of a very long chat over several turns, and then shows them."""
        if self.bar.field.text() != self._needle:
            self._needle, self._counts = self.bar.field.text(), {}
        self._to_count = iter(self._talk.messages[::-1] if self._needle else ())
        self._count_some()

    def _count_some(self) -> None:
        end = perf_counter() + SLICE_S
        for message in self._to_count:
            self._written(message)
            if perf_counter() > end:
                self._counting.start()
                self.bar.show_counting()
                return
        self._counting.stop()
        goes, self._goes = self._goes, False
        self._collect()
        if goes and self._hits:
            self._place = len(self._hits) - 1
            self._go(last=True)
        else:
            self._show()

    def _written(self, message: ChatMessage) -> int:
        """How often the word is in a message, as it was written."""
        known = self._counts.get(message.id)
        if known is None or known[0] is not message.content:
            text = split_thinking(message.content)[1] if message.role == "assistant" else message.content
            known = message.content, text.lower().count(self._needle.lower())  # as Qt compares them: ß is no ss
            self._counts[message.id] = known
        return known[1]

    def _collect(self) -> None:
        placed, self._hits = self._placed_hits(), []
        for message in self._talk.messages if self._needle else ():
            self._hits += placed[message.id] if message.id in placed else [Hit(message.id)] * self._written(message)
        self._place = min(self._place, max(0, len(self._hits) - 1))

    def _placed_hits(self) -> dict[int, list[Hit]]:
        """The hits in what is mounted: of the message gone to before all others, then of the newest, up to ``MARKED``."""
        placed: dict[int, list[Hit]] = {}
        mounted = [message for message in self._talk.messages[::-1] if self._transcript.mounted(message.id)] if self._needle else []
        count = 0
        for message in sorted(mounted, key=lambda message: message.id != self._near):
            if count >= MARKED:
                break
            placed[message.id] = self._in_message(message)
            count += len(placed[message.id])
        return placed

    def _in_message(self, message: ChatMessage) -> list[Hit]:
        mounted = self._transcript.mounted(message.id)
        assert mounted is not None
        hits, written = self._in_widgets(message.id, mounted), self._written(message)
        if isinstance(mounted, UserMessage) and len(hits) < written and mounted.show_all():
            self._placed.start()
            hits = self._in_widgets(message.id, mounted)
        if slices().waiting:  # what is not laid out yet is found all the same
            hits += [Hit(message.id)] * (written - len(hits))
        return hits

    def _in_widgets(self, message_id: int, mounted: UserMessage | AnswerMessage) -> list[Hit]:
        hits: list[Hit] = []
        for widget in mounted.text_widgets():
            cursor = widget.document().find(self._needle)
            while not cursor.isNull():
                hits.append(Hit(message_id, widget, QTextCursor(cursor)))
                cursor = widget.document().find(self._needle, cursor)
        return hits

    def _go(self, last: bool) -> None:
        hit = self._hits[self._place]
        self._near = hit.message_id
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
