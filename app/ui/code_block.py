"""A code block of an answer: never wrapped, coloured once its fence closes, with a button that copies the code alone."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QMargins, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QPaintEvent, QResizeEvent, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.blocks import Block
from app.core.sanitize import break_long_runs
from app.core.words import tr, trn
from app.ui import theme
from app.ui.blocks import as_written
from app.ui.highlight import CodeHighlighter

COPIED_MS = 1_500
LONG = 12  # lines from which on the button is there at both ends
TALLEST, VIEW = 200, 30  # code of more lines than the first is shown in a view of the second that scrolls by itself


class CodeEdit(QPlainTextEdit):
    """Code without wrapping, as tall as its lines; only wide lines scroll, and code of very many lines."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.written = ""  # what is shown, as it was written
        self.setReadOnly(True)
        self.setAccessibleName(tr("Code"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)
        option = self.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)  # also where a line begins in Hebrew or Arabic
        self.document().setDefaultTextOption(option)
        self.viewport().setAutoFillBackground(False)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Qt's hook for copying and dragging."""
        return as_written(super().createMimeDataFromSelection(), self.written)

    @property
    def bounded(self) -> bool:
        """Whether it has too many lines to show them all at once."""
        return self.blockCount() > TALLEST

    def fit(self) -> None:
        """Room for every line or a view of them, and for the scroll bar where a line is wider than the view."""
        if self.bounded and self.focusPolicy() != Qt.FocusPolicy.StrongFocus:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # so that the keyboard can scroll it
        size = self.document().documentLayout().documentSize()
        bar = self.horizontalScrollBar()
        wide = size.width() > self.viewport().width()
        lines = VIEW if self.bounded else size.height()
        height = ceil(lines * self.fontMetrics().lineSpacing()) + (bar.sizeHint().height() if wide else 0) + 2
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways stays here; up and down belongs to the transcript, unless one clicked into code that scrolls by itself."""
        zooms = event.modifiers() & Qt.KeyboardModifier.ControlModifier  # which would change the size of this code alone
        here = abs(event.angleDelta().x()) > abs(event.angleDelta().y()) or (self.bounded and self.hasFocus())
        if here and not zooms:
            super().wheelEvent(event)
        else:
            event.ignore()


class CodeBlock(QFrame):
    """A code block: its language, a button that copies the code alone, and the code. ``copied(str)`` says what."""

    copied = Signal(str)

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._block, self._shown = Block("code", "", "", closed=False), ""
        self._language = QLabel()
        self._language.setTextFormat(Qt.TextFormat.PlainText)
        self._copy, self._copy_below = self._button(), self._button()
        self._reset = QTimer(self, interval=COPIED_MS, singleShot=True)
        self._reset.timeout.connect(self._show_copy)
        self.edit = CodeEdit()
        self.highlighter = CodeHighlighter(self.edit.document(), theme.current().dark)
        header = QHBoxLayout()
        header.addWidget(self._language, 1)
        header.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(QMargins(theme.M, theme.XS, theme.S, theme.M))
        layout.setSpacing(theme.XS)
        layout.addLayout(header)
        layout.addWidget(self.edit)
        layout.addWidget(self._copy_below, 0, Qt.AlignmentFlag.AlignRight)
        self._copy_below.hide()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.restyle(text_size)

    @property
    def cost(self) -> int:
        """What laying it out costs, in characters of prose."""
        return min(len(self._shown), TALLEST * 80)

    @property
    def code(self) -> str:
        """The code as the model wrote it."""
        return self._block.text

    def set_block(self, block: Block) -> None:
        """Shows ``block``. Growing code is appended to, and coloured once, when its fence closes."""
        before, self._block = self._block, block
        bar = self.edit.verticalScrollBar()
        follows = bool(before.text) and not block.closed and bar.value() == bar.maximum()
        shown_before, self._shown = self._shown, break_long_runs(block.text)
        self.edit.written = block.text
        if self._shown.startswith(shown_before):
            cursor = QTextCursor(self.edit.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(self._shown[len(shown_before) :])
        else:
            self.edit.setPlainText(self._shown)
        self._show_language()
        self._copy_below.setVisible(block.text.count("\n") + 1 >= LONG)
        if block.closed and not before.closed:
            self.highlighter.start(self._shown, block.language)
        self.edit.fit()
        if follows:
            bar.setValue(bar.maximum())

    def copy_code(self) -> None:
        """Puts the code, nothing else, on the clipboard."""
        QGuiApplication.clipboard().setText(self.code)
        for button in (self._copy, self._copy_below):
            button.setText(tr("Copied"))
            button.setIcon(theme.icon("check"))
        self._reset.start()
        self.copied.emit(self.code)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        colours = theme.current()
        self._language.setFont(theme.scaled_font(text_size * 85 // 100))
        theme.tint(self._language, colours.quiet)
        for button in (self._copy, self._copy_below):
            button.setFont(theme.scaled_font(text_size * 85 // 100))
        self.edit.setFont(theme.code_font(text_size * 92 // 100))
        self.highlighter.set_dark(colours.dark)
        self._show_copy()
        self.edit.fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme.paint_card(self)

    def _show_language(self) -> None:
        language, lines = self._block.language or tr("text"), self.edit.blockCount()
        long = trn("{language} · {count} line", "{language} · {count} lines", lines, language=language)
        self._language.setText(long if self.edit.bounded else language)

    def _show_copy(self) -> None:
        for button in (self._copy, self._copy_below):
            button.setText(tr("Copy"))
            button.setIcon(theme.icon("copy"))

    def _button(self) -> QToolButton:
        button = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setIconSize(QSize(14, 14))
        button.setAccessibleName(tr("Copy code"))
        button.clicked.connect(self.copy_code)
        return button
