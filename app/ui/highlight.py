"""Colours finished code with Pygments, in slices short enough that the window never stalls."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QSyntaxHighlighter, QTextCharFormat, QTextDocument

SLICE_S = 0.006
LONGEST = 200_000  # characters; beyond that plain text serves better than seconds of lexing

LIGHT = {"comment": "#6b7280", "keyword": "#7c3aed", "string": "#0b6e4f", "number": "#b45309", "name": "#1d4ed8"}
DARK = {"comment": "#8b949e", "keyword": "#c4a1ff", "string": "#86d9b4", "number": "#f0b46a", "name": "#8ab8ff"}
GROUPS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "comment"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (String, "string"),
    (Number, "number"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Builtin, "name"),
    (Name.Tag, "name"),
    (Name.Decorator, "name"),
)
Span = tuple[int, int, str]


def lexer_for(language: str) -> Lexer | None:
    """The lexer for a fence's tag; None where the tag is missing or unknown, so that nothing is guessed."""
    try:
        return get_lexer_by_name(language.strip().lower(), ensurenl=False, stripnl=False) if language.strip() else None
    except ClassNotFound:
        return None


class CodeHighlighter(QSyntaxHighlighter):
    """Holds the spans of each line, in UTF-16 units as Qt counts them, and paints them in the theme's colours."""

    def __init__(self, document: QTextDocument, dark: bool):
        super().__init__(document)
        self._lines: dict[int, list[Span]] = {}
        self._formats: dict[str, QTextCharFormat] = {}
        self._work: Iterator[None] | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._slice)
        self._set_colours(dark)

    def start(self, text: str, language: str) -> None:
        """Colours ``text``, which the document holds, from now on in the background."""
        lexer = lexer_for(language)
        if lexer is None or len(text) > LONGEST:
            return
        self._begin(self._lex(lexer, text))

    @property
    def working(self) -> bool:
        """Whether slices are still to come."""
        return self._timer.isActive()

    def set_dark(self, dark: bool) -> None:
        """Follows the palette."""
        if dark == self._dark:
            return
        self._set_colours(dark)
        if self._lines:
            self._begin(self._repaint(self._work))

    def highlightBlock(self, text: str) -> None:
        """Qt's hook: paints one line from the spans found so far."""
        for start, length, group in self._lines.get(self.currentBlock().blockNumber(), ()):
            self.setFormat(start, length, self._formats[group])

    def _set_colours(self, dark: bool) -> None:
        self._dark = dark
        for group, colour in (DARK if dark else LIGHT).items():
            style = QTextCharFormat()
            style.setForeground(QColor(colour))
            style.setFontItalic(group == "comment")
            self._formats[group] = style

    def _begin(self, work: Iterator[None]) -> None:
        self._work = work
        self._timer.start()

    def _repaint(self, unfinished: Iterator[None] | None) -> Iterator[None]:
        """Paints every line that was coloured again, then goes on where the colouring was."""
        for line in sorted(self._lines):
            self._paint_line(line)
            yield
        yield from unfinished or ()

    def _slice(self) -> None:
        began = perf_counter()
        while self._work is not None and perf_counter() - began < SLICE_S:
            try:
                next(self._work)
            except StopIteration:
                self._work = None
        if self._work is None:
            self._timer.stop()

    def _lex(self, lexer: Lexer, text: str) -> Iterator[None]:
        line, column = 0, 0
        for kind, value in lexer.get_tokens(text):
            group = next((name for parent, name in GROUPS if kind in parent), None)
            for index, part in enumerate(value.split("\n")):
                if index:
                    self._paint_line(line)
                    line, column = line + 1, 0
                length = len(part) + sum(char > "\uffff" for char in part)
                if group is not None and length:
                    self._lines.setdefault(line, []).append((column, length, group))
                column += length
            yield
        self._paint_line(line)

    def _paint_line(self, line: int) -> None:
        block = self.document().findBlockByNumber(line) if line in self._lines else None
        if block is not None and block.isValid():
            self.rehighlightBlock(block)


def stop_highlighting(owner: QObject) -> None:
    """Stops every slice timer below ``owner``, before its widgets are deleted."""
    for highlighter in owner.findChildren(CodeHighlighter):
        highlighter._timer.stop()
