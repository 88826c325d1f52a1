"""Read-only text as tall as its content: what the user wrote, and the prose, quotes and tables of an answer."""

from __future__ import annotations

import re
from math import ceil

from PySide6.QtCore import QMimeData, QRect, QRegularExpression, QSize, Qt, QUrl
from PySide6.QtGui import (
    QFont,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.core.blocks import Block
from app.core.math_text import Formula, take_formulas
from app.core.sanitize import break_long_runs, without_breaks
from app.core.words import tr
from app.ui import theme
from app.ui.labels import tip
from app.ui.links import ask_to_open
from app.ui.slices import cost, slices

NO_HTML = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
MARK = "\ue000{}\ue001"  # stands for a formula while Qt reads the Markdown around it
MARKED = QRegularExpression("\ue000(\\d+)\ue001")
SOURCE = QTextFormat.Property.UserProperty.value + 1  # of a formula: its LaTeX, for copying
# Qt leaves an image without a name out; one in inline code is none.
NAMELESS_IMAGE = re.compile(r"(?P<code>(`+)(?!`).*?(?<!`)\2(?!`))|!\[\s*\]\(", re.DOTALL)
NO_NAME = "\u2063"
LONGEST_NAME = 80  # characters of an image's address, which may hold the whole image
RESIZED = 3  # laying out again at another width takes that part of the first time
CELL_CHARACTERS = 14  # a column of a table that is too wide is at least that wide


def as_written(copied: QMimeData, source: str) -> QMimeData:
    """What was ``copied`` of ``source``, without the spaces that were put into it for the layout only."""
    text = without_breaks(copied.text(), source)
    if text == copied.text():
        return copied
    whole = QMimeData()
    whole.setText(text)
    if copied.hasHtml():
        whole.setHtml(without_breaks(copied.html(), source))
    return whole


class TextBlock(QTextBrowser):
    """Read-only text without frame or scroll bars, fixed to the height of its content; copied as it was written."""

    def __init__(self, name: str, text_size: int, parent: QWidget | None = None):
        self._put_off = False
        super().__init__(parent)
        self.written = ""  # what is shown, as it was written
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setOpenLinks(False)
        self.anchorClicked.connect(lambda url: ask_to_open(url, self.window()))
        self.highlighted.connect(lambda url: self.setToolTip(tip(url.toString())))  # where a link leads, before it is opened
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().setUndoRedoEnabled(False)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.set_text_size(text_size)

    def show_plain(self, text: str) -> None:
        """Shows ``text`` as it is."""
        self.written = text
        self.setPlainText(break_long_runs(text))

    def createMimeDataFromSelection(self) -> QMimeData:
        """Qt's hook for copying and dragging."""
        return as_written(super().createMimeDataFromSelection(), self.written)

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

    @property
    def cost(self) -> int:
        """What laying it out costs, in characters of prose."""
        return self.document().characterCount()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width lays the text out again: at once where it is in view, else when there is time."""
        if event.size().width() == event.oldSize().width():
            super().resizeEvent(event)
        elif not self.visibleRegion().isEmpty():
            self._follow_width()
        elif not self._put_off:
            self._put_off = True
            slices().run(self, self.cost // RESIZED, self._follow_width)

    def _follow_width(self) -> None:
        self._put_off = False
        super().resizeEvent(QResizeEvent(self.viewport().size(), QSize()))
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Up and down belongs to the transcript; sideways stays where a block is wider than the column."""
        sideways = abs(event.angleDelta().x()) > abs(event.angleDelta().y())
        if sideways and self.horizontalScrollBar().maximum() > 0:
            super().wheelEvent(event)
        else:
            event.ignore()


class ProseBlock(TextBlock):
    """Paragraphs, lists, headings, quotes, rules and tables, drawn by Qt from their Markdown."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        self._block: Block | None = None
        self._formulas: list[Formula] = []
        self._look = (text_size, theme.current())
        super().__init__(tr("Answer text"), text_size, parent)

    @property
    def cost(self) -> int:
        return cost(self._block.text) if self._block is not None else 1

    def set_block(self, block: Block) -> None:
        """Draws ``block``; the same text again costs nothing."""
        if self._block is not None and block.text == self._block.text and block.kind == self._block.kind:
            return
        self._block = block
        self._draw()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size; where neither changed, nothing is drawn again."""
        look = (text_size, theme.current())
        if look != self._look:
            self._look = look
            self.set_text_size(text_size)
            self._draw()

    def _draw(self) -> None:
        if self._block is None:
            return
        self.written = self._block.text
        text = NAMELESS_IMAGE.sub(lambda found: f"![{NO_NAME}](" if found["code"] is None else found[0], self._block.text)
        text, self._formulas = take_formulas(break_long_runs(text), MARK)
        if self._block.kind != "table":
            # Models end lines on purpose (verse, addresses): keep them, where Markdown would join them.
            text = text.replace("\n", "  \n")
        self.document().setMarkdown(text, NO_HTML)
        whole = QTextCursor(self.document())
        whole.beginEditBlock()  # or Qt would lay a table out again for each cell that is changed
        self._put_formulas()
        self._name_images()
        self._space_out()
        whole.endEditBlock()
        has_link = "](" in text or "://" in text
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_link else Qt.FocusPolicy.ClickFocus)
        self.fit()

    def fit(self) -> None:
        """As tall as the text at the present width. A table that does not fit keeps readable columns and scrolls sideways."""
        width = self._table_width()
        if width is None:
            self.setLineWrapMode(QTextBrowser.LineWrapMode.WidgetWidth)
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            super().fit()
            return
        self.setLineWrapMode(QTextBrowser.LineWrapMode.FixedPixelWidth)
        self.setLineWrapColumnOrWidth(width)
        self.document().setTextWidth(width)
        if self.horizontalScrollBarPolicy() != Qt.ScrollBarPolicy.ScrollBarAlwaysOn:
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
            self.moveCursor(QTextCursor.MoveOperation.Start)  # drawing left it at the end, and the view with it
            self.horizontalScrollBar().setValue(0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # so that the arrow keys can scroll it
        height = ceil(self.document().size().height()) + self.horizontalScrollBar().sizeHint().height() + 1
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def _table_width(self) -> int | None:
        """Pixels for a table with too many columns to fit; None for one that fits, and for everything else."""
        if self._block is None or self._block.kind != "table":
            return None
        self.document().setTextWidth(-1)
        columns = self._block.text.partition("\n")[0].strip().strip("|").count("|") + 1
        readable = columns * CELL_CHARACTERS * self.fontMetrics().averageCharWidth()
        width = min(ceil(self.document().idealWidth()), readable)
        return width if width > max(self.viewport().width(), 50) else None

    def createMimeDataFromSelection(self) -> QMimeData:
        """Qt's hook for copying: formulas come out as the LaTeX they were."""
        if not self._formulas:
            return super().createMimeDataFromSelection()
        data = QMimeData()
        data.setText(self._selected_source())
        return data

    def _selected_source(self) -> str:
        chosen, lines = self.textCursor(), []
        start, end = chosen.selectionStart(), chosen.selectionEnd()
        block = self.document().findBlock(start)
        while block.isValid() and block.position() < end:
            parts, place = [], block.begin()
            while not place.atEnd():
                piece = place.fragment()
                first, last = max(start, piece.position()), min(end, piece.position() + piece.length())
                if first < last:
                    source = piece.charFormat().property(SOURCE)
                    text = QTextCursor(self.document())
                    text.setPosition(first)
                    text.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
                    parts.append(source or text.selectedText().replace("\u2028", "\n"))
                place += 1
            lines.append("".join(parts))
            block = block.next()
        return without_breaks("\n".join(lines), self.written)

    def _put_formulas(self) -> None:
        found = self.document().find(MARKED) if self._formulas else QTextCursor()
        while not found.isNull():
            index = int(found.selectedText()[1:-1])
            if index < len(self._formulas):
                formula = self._formulas[index]
                style = QTextCharFormat(found.charFormat())
                style.setProperty(SOURCE, formula.source)
                style.setToolTip(tip(formula.source))
                found.insertText(formula.shown.replace("\n", "\u2028"), style)
            found = self.document().find(MARKED, found)

    def _name_images(self) -> None:
        """Puts a link in place of each image: its address is shown, and nothing is fetched."""
        if "![" not in (self._block.text if self._block else ""):
            return
        block = self.document().begin()
        while block.isValid():
            places, place = [], block.begin()
            while not place.atEnd():
                piece = place.fragment()
                if piece.charFormat().isImageFormat():
                    image = piece.charFormat().toImageFormat()
                    alt = image.property(QTextFormat.Property.ImageAltText.value)
                    places.append((piece.position(), piece.length(), image.name(), alt))
                place += 1
            for position, length, address, alt in reversed(places):
                cursor = QTextCursor(self.document())
                cursor.setPosition(position)
                cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
                link = QTextCharFormat()
                link.setAnchor(True)
                link.setAnchorHref(address)
                link.setForeground(self.palette().link())
                link.setFontUnderline(True)
                cursor.insertText(tr("Image: {name}", name=str(alt or "").strip(NO_NAME) or address[:LONGEST_NAME]), link)
            block = block.next()

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
        if self._block is not None and self._block.kind == "quote":
            self._draw_in()
        if self._block is not None and self._block.kind == "table":
            for frame in self.document().rootFrame().childFrames():
                if isinstance(frame, QTextTable):
                    self._style_table(frame)

    def _draw_in(self) -> None:
        """Half of the room that Qt leaves beside a quote: it has a bar there."""
        block = self.document().begin()
        while block.isValid():
            narrower = QTextBlockFormat()
            narrower.setLeftMargin(block.blockFormat().leftMargin() / 2)
            QTextCursor(block).mergeBlockFormat(narrower)
            block = block.next()

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
