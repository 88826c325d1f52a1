"""The widgets an answer is made of: prose, code and tables, each as tall as its content."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QMargins, QRect, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSizePolicy,
    QTextBrowser,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.blocks import Block
from app.core.sanitize import break_long_runs
from app.ui import theme
from app.ui.highlight import CodeHighlighter

NO_HTML = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
SAFE_SCHEMES = ("http", "https", "mailto")
COPIED_MS = 1_500


class TextBlock(QTextBrowser):
    """Read-only text without frame or scroll bars, fixed to the height of its content."""

    def __init__(self, name: str, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setOpenLinks(False)
        self.anchorClicked.connect(open_link)
        self.highlighted.connect(lambda url: self.setToolTip(url.toString()))  # where a link leads, before it is opened
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().setUndoRedoEnabled(False)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.set_text_size(text_size)

    def set_text_size(self, percent: int) -> None:
        """Text in percent of the system font."""
        self.setFont(theme.scaled_font(percent))
        self.document().setDefaultFont(self.font())
        self.fit()

    def fit(self) -> None:
        """Makes the widget exactly as tall as its text at the present width."""
        self.document().setTextWidth(max(self.viewport().width(), 50))
        height = max(ceil(self.document().size().height()), 1)
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def loadResource(self, kind: int, url: QUrl | str) -> object:
        """Qt's hook: nothing is ever fetched for an answer, so a text cannot reach out to the network."""
        return None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The transcript scrolls, never a block."""
        event.ignore()


def open_link(url: QUrl) -> None:
    """Opens web and mail addresses; anything else an answer links to is ignored."""
    if url.scheme().lower() in SAFE_SCHEMES:
        QDesktopServices.openUrl(url)


class ProseBlock(TextBlock):
    """Paragraphs, lists, headings, quotes, rules and tables, drawn by Qt from their Markdown."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__("Answer text", text_size, parent)
        self._block: Block | None = None

    def set_block(self, block: Block) -> None:
        """Draws ``block``; the same text again costs nothing."""
        if self._block is not None and block.text == self._block.text and block.kind == self._block.kind:
            return
        self._block = block
        self._draw()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self.set_text_size(text_size)
        self._draw()

    def _draw(self) -> None:
        if self._block is None:
            return
        text = break_long_runs(self._block.text)
        if self._block.kind != "table":
            # Models end lines on purpose (verse, addresses): keep them, where Markdown would join them.
            text = text.replace("\n", "  \n")
        self.document().setMarkdown(text, NO_HTML)
        self._space_out()
        has_link = "](" in text or "://" in text
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_link else Qt.FocusPolicy.ClickFocus)
        self.fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._block is not None and self._block.kind == "quote":
            painter = QPainter(self.viewport())
            painter.fillRect(QRect(theme.S, 0, 3, self.height()), theme.current().line)

    def _space_out(self) -> None:
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        spaced = QTextBlockFormat()
        spaced.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.mergeBlockFormat(spaced)
        if self._block is not None and self._block.kind == "table":
            for frame in self.document().rootFrame().childFrames():
                if isinstance(frame, QTextTable):
                    self._style_table(frame)

    def _style_table(self, table: QTextTable) -> None:
        style = table.format()
        style.setBorder(1)
        style.setBorderCollapse(True)
        style.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        style.setBorderBrush(theme.current().line)
        style.setCellPadding(theme.XS + 1)
        style.setCellSpacing(0)
        style.setWidth(QTextLength())
        table.setFormat(style)
        for column in range(table.columns()):
            cell = table.cellAt(0, column)
            text = cell.firstCursorPosition()
            text.setPosition(cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
            bold = text.charFormat()
            bold.setFontWeight(QFont.Weight.DemiBold)
            text.mergeCharFormat(bold)


class CodeEdit(QPlainTextEdit):
    """Code without wrapping, as tall as its lines; only wide lines scroll."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setReadOnly(True)
        self.setAccessibleName("Code")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)

    def fit(self) -> None:
        """Room for every line, and for the scroll bar where a line is wider than the view."""
        size = self.document().documentLayout().documentSize()
        bar = self.horizontalScrollBar()
        wide = size.width() > self.viewport().width()
        height = ceil(size.height() * self.fontMetrics().lineSpacing()) + (bar.sizeHint().height() if wide else 0) + 2
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways stays here, up and down belongs to the transcript."""
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
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
        self._copy = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._copy.setIconSize(QSize(14, 14))
        self._copy.setAccessibleName("Copy code")
        self._copy.clicked.connect(self.copy_code)
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
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.restyle(text_size)

    @property
    def code(self) -> str:
        """The code as the model wrote it."""
        return self._block.text

    def set_block(self, block: Block) -> None:
        """Shows ``block``. Growing code is appended to, and coloured once, when its fence closes."""
        before, self._block = self._block, block
        shown_before, self._shown = self._shown, break_long_runs(block.text)
        if self._shown.startswith(shown_before):
            cursor = QTextCursor(self.edit.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(self._shown[len(shown_before) :])
        else:
            self.edit.setPlainText(self._shown)
        self._language.setText(block.language or "text")
        if block.closed and not before.closed:
            self.highlighter.start(self._shown, block.language)
        self.edit.fit()

    def copy_code(self) -> None:
        """Puts the code, nothing else, on the clipboard."""
        QGuiApplication.clipboard().setText(self.code)
        self._copy.setText("Copied")
        self._copy.setIcon(theme.icon("check"))
        self._reset.start()
        self.copied.emit(self.code)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        colours = theme.current()
        self._language.setFont(theme.scaled_font(text_size * 85 // 100))
        theme.tint(self._language, colours.quiet)
        self._copy.setFont(theme.scaled_font(text_size * 85 // 100))
        self.edit.setFont(theme.code_font(text_size * 92 // 100))
        self.highlighter.set_dark(colours.dark)
        self._show_copy()
        self.edit.fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme.paint_card(self)

    def _show_copy(self) -> None:
        self._copy.setText("Copy")
        self._copy.setIcon(theme.icon("copy"))
