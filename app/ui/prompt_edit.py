"""The editor of a prompt: grows with its text, sends with Return, leaves composing to the input method, hands big pastes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.core.attachments import LONGEST as LONGEST_PASTE
from app.core.attachments import is_huge
from app.core.sanitize import clean_text
from app.core.words import tr

MAX_LINES = 8


def local_files(source: QMimeData) -> list[Path]:
    """The files that are pasted or dropped."""
    return [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]


class PromptEdit(QPlainTextEdit):
    """Grows with its text up to ``MAX_LINES``. Signals: ``submitted()``; ``pasted(str)`` for text too large to write here;
    ``files_pasted(list[Path])``, also for files dropped; ``undone()`` for Undo where nothing was typed since the last of
    these; ``refused(str)`` with the reason why a paste was not taken.
    """

    submitted = Signal()
    pasted = Signal(str)
    files_pasted = Signal(list)
    undone = Signal()
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._composing = False
        self._handed_on = False  # the last change was a paste that went elsewhere
        self.undoes_elsewhere: Callable[[], bool] = lambda: False  # whether the window has something to undo, where this has not
        self.setAccessibleName(tr("Message"))
        self.setPlaceholderText(tr("Ask anything"))
        self.textChanged.connect(self._forget_paste)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().documentLayout().documentSizeChanged.connect(lambda _size: self.fit())
        self.fit()

    def fit(self) -> None:
        """As tall as its lines, within bounds."""
        lines = min(max(int(self.document().size().height()), 1), MAX_LINES)
        margins = self.contentsMargins()
        padding = 2 * int(self.document().documentMargin()) + margins.top() + margins.bottom() + 2
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + padding)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return sends; with Shift or Option it makes a line; while an input method composes, it belongs to that."""
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        line_break = event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        if is_return and self._composing:
            event.ignore()
        elif is_return and not line_break:
            self.submitted.emit()
        elif is_return:
            self.textCursor().insertText("\n")
            self.ensureCursorVisible()
        elif self._handed_on and event.matches(QKeySequence.StandardKey.Undo):
            self._handed_on = False
            self.undone.emit()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()  # stops the answer, through the window; never clears what was written
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Undo is the window's where it offers it and nothing is to be undone here."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            own = self._handed_on or self.document().isUndoAvailable()
            if event.matches(QKeySequence.StandardKey.Undo) and not own and self.undoes_elsewhere():
                event.ignore()
                return False
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or bool(local_files(source))

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Takes plain text; files, and text that is too large to read here, are handed on before any layout sees them."""
        if files := local_files(source):
            self._hand_on(lambda: self.files_pasted.emit(files))
            return
        if not source.hasText():
            return
        text = source.text()
        if len(text) > LONGEST_PASTE:
            self.refused.emit(
                tr(
                    "The pasted text has {count} characters and a message holds {limit}: nothing was inserted, it is still on "
                    "the clipboard. Paste a part of it.",
                    count=len(text),
                    limit=LONGEST_PASTE,
                )
            )
            return
        text = clean_text(text)
        if is_huge(text):
            self._hand_on(lambda: self.pasted.emit(text))
        else:
            self.insertPlainText(text)

    def _hand_on(self, give: Callable[[], None]) -> None:
        self._handed_on = True
        give()  # where the text comes in here after all, that change is undone as any other

    def _forget_paste(self) -> None:
        self._handed_on = False
