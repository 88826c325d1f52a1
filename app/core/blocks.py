"""Cuts streaming Markdown into blocks of bounded size so that only the last one is ever parsed or drawn again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.graphemes import safe_cut
from app.core.markdown_lines import Kind, LineSpan, closes_fence, is_blank, parse_lines

# A list longer than this (characters) is cut between its items, so that drawing its tail stays cheap.
LIST_LIMIT = 2000
# Whatever else is longer is cut between two lines, and a line between two words; code is not, since it has a view of its own.
PIECE_LIMIT = 4000
LINE_LIMIT = 8000
# A table with more cells goes on in another one under the same header.
TABLE_CELLS = 180
# The tail is parsed again when it grew by half, and at a line that may end a block; at such lines only after a quarter
# of growth once PATIENCE parses settled nothing. So all parsing together stays proportional to the text.
PATIENCE = 4
SLACK = 200

_FENCE_LIKE = re.compile(r" {0,3}(`{3,}[^`]*|~{3,}.*)$")
_DELIMITER_ROW_LIKE = re.compile(r"(?=[^|]*\|) {0,3}[-:| \t]*-[-:| \t]*$")
_TABLE_ROW_LIKE = re.compile(r" {0,3}\|")
# A line begun that may still become a fence, a rule, an underline or a marker: shown once that is decided.
_UNDECIDED = re.compile(r" {0,3}(`{2,}[^`]*|~{3,}.*|[-=*_+#>:| \t]+|\d{1,9}[.)]\s*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block to draw. ``text`` is its Markdown source; for "code" the code alone, ``language`` the tag of its fence.

    ``closed`` is False for the block still being written: its text grows, and its kind may still change.
    """

    kind: Kind
    text: str
    language: str = ""
    closed: bool = True


class BlockSplitter:
    """``blocks`` depends only on the text fed so far, never on how it was cut into pieces.

    ``blocks[:committed]`` never change again; at most one block follows them. ``parsed_chars`` counts the characters
    handed to the Markdown parser, for tests of linear work. Feed it cleaned text (``app.core.sanitize.clean_text``).
    """

    def __init__(self) -> None:
        self.parsed_chars = 0
        self._done: list[Block] = []
        self._lines: list[str] = []  # whole lines of the tail; while a fence is open, of its code
        self._line_chars = 0
        self._partial: list[str] = []  # pieces of the line being written
        self._fence: LineSpan | None = None
        self._kind: Kind = "prose"  # of the tail, when last parsed
        self._in_list = False  # the same
        self._parsed_at = 0
        self._fruitless = 0
        self._dedent = 0  # characters that lines lose, since they go on with a list that was cut at a deeper level
        self._undecided = False  # the last line opens a fence, is a heading or heads a table
        self._finished = False

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the text so far, in order."""
        tail = self._tail()
        return [*self._done, tail] if tail else list(self._done)

    @property
    def committed(self) -> int:
        """How many of the first blocks never change again."""
        return len(self._done)

    def feed(self, text: str) -> None:
        """Appends ``text``. Raises ``ValueError`` after ``finish``."""
        if self._finished:
            raise ValueError("The text was finished.")
        first, *rest = text.split("\n")
        self._partial.append(first)
        self._cut_line()
        for piece in rest:
            line = "".join(self._partial)
            self._partial = []
            self._take_line(line)
            self._partial = [piece]
            self._cut_line()

    def finish(self) -> None:
        """No more text will come: everything is committed, an open fence ends where the text ends."""
        if self._finished:
            return
        self._finished = True
        line = "".join(self._partial)
        self._partial = []
        if line:
            self._take_line(line)
        if self._fence is None and self._lines:
            self._parse(final=True)
        if self._fence is not None:
            self._close_fence()

    # --- lines

    def _cut_line(self) -> None:
        """Commits what of a very long line can be shown for itself."""
        line = "".join(self._partial) if self._fence is None else ""
        while len(line) > LINE_LIMIT and self._fence is None and self._kind != "table" and not _TABLE_ROW_LIKE.match(line):
            cut = line.rfind(" ", 0, LINE_LIMIT) + 1 or safe_cut(line[: LINE_LIMIT + 1], LINE_LIMIT)
            self._lines.append(line[:cut])
            self._line_chars += cut + 1
            self._parse(final=True)
            line = line[cut:]
            self._partial = [line]

    def _take_line(self, line: str) -> None:
        if self._dedent and self._fence is None and not is_blank(line):
            self._dedent = min(self._dedent, _indent(line))
        line = line[min(self._dedent, _indent(line)) :]
        if self._fence is not None:
            if closes_fence(line, self._fence.markup):
                self._close_fence()
            else:
                self._lines.append(line)
            return
        if not self._lines and is_blank(line):
            return  # blank lines between blocks belong to none
        self._lines.append(line)
        self._line_chars += len(line) + 1
        if self._parse_is_due(line):
            self._parse()

    def _parse_is_due(self, line: str) -> bool:
        if len(self._lines) == 1 or self._undecided or self._line_chars >= 1.5 * self._parsed_at + SLACK:
            return True
        if is_blank(line) and self._in_list:
            return False  # items may follow
        if is_blank(line) or _FENCE_LIKE.match(line) or _DELIMITER_ROW_LIKE.match(line):
            leaves_list = self._in_list and line.startswith(("```", "~~~"))
            return leaves_list or self._fruitless < PATIENCE or self._line_chars >= 1.25 * self._parsed_at
        return False

    def _parse(self, final: bool = False) -> None:
        """Parses the tail and commits what no further line can change; with ``final``, everything."""
        self.parsed_chars += self._line_chars
        *settled, last = parse_lines(self._lines)
        before = len(self._done)
        for span in settled:
            self._commit(span)
        # A first line with bars may turn out to head a table, whatever it begins with: the next line tells.
        bars = "|" in self._lines[-1] and last.start == len(self._lines) - 1
        self._undecided = (last.open_fence or last.settled) and bars and not final
        if self._undecided:
            self._kind, self._in_list = "prose", False
            self._keep(last.start)
        elif last.open_fence:
            self._fence = last
            self._keep(last.start + 1)
        elif final or last.settled:
            self._commit(last)
            self._keep(len(self._lines))
        else:
            self._kind, self._in_list = last.kind, bool(last.item_starts)
            self._cut(last)
        self._parsed_at = self._line_chars
        self._fruitless = 0 if len(self._done) > before or self._fence else self._fruitless + 1

    def _cut(self, span: LineSpan) -> None:
        """Keeps the block that may still grow as the tail; of one that is large already only what has to be."""
        size = sum(map(len, self._lines[span.start : span.end]))
        if span.kind == "table":
            self._cut_table(span)
        elif size > LIST_LIMIT and len(span.item_starts) > 1:
            self._commit(LineSpan(span.kind, span.start, span.item_starts[-1]))
            self._keep(span.item_starts[-1])
        elif size > PIECE_LIMIT:
            self._commit(span)
            self._dedent += _indent(self._lines[span.end - 1]) if span.item_starts else 0
            self._keep(len(self._lines))
        else:
            self._keep(span.start)

    def _cut_table(self, span: LineSpan) -> None:
        head, rows = self._lines[span.start : span.start + 2], self._lines[span.start + 2 : span.end]
        columns = head[1].strip().strip("|").count("|") + 1
        piece: list[str] = []
        for row in rows:
            if ((len(piece) + 1) * columns > TABLE_CELLS and len(piece) > 1) or sum(map(len, piece)) > PIECE_LIMIT:
                self._done.append(Block("table", _source([*head, *piece])))
                piece = []
            piece.append(row)
        self._lines[span.start : span.end] = [*head, *piece]
        self._keep(span.start)

    def _keep(self, first: int) -> None:
        self._lines = self._lines[first:]
        self._line_chars = sum(map(len, self._lines)) + len(self._lines)
        if not self._lines:
            self._kind, self._in_list = "prose", False

    # --- blocks

    def _commit(self, span: LineSpan) -> None:
        if span.markup:
            code = self._lines[span.start + 1 : span.end - 1]
            self._done.append(Block("code", _code(code, span.indent), span.language))
        else:
            self._done.append(Block(span.kind, _source(self._lines[span.start : span.end])))

    def _close_fence(self) -> None:
        assert self._fence is not None
        self._done.append(Block("code", _code(self._lines, self._fence.indent), self._fence.language))
        self._fence = None
        self._keep(len(self._lines))
        self._parsed_at = self._fruitless = 0

    def _tail(self) -> Block | None:
        """The block still being written, without what is not decided yet."""
        partial = "".join(self._partial)
        self._partial = [partial]
        partial = partial[min(self._dedent, _indent(partial)) :]
        if self._fence is not None:
            begun = partial.strip(" ")
            may_close = bool(begun) and not begun.strip(self._fence.markup[0])
            lines = self._lines if may_close or not partial else [*self._lines, partial]
            return Block("code", _code(lines, self._fence.indent), self._fence.language, closed=False)
        lines, kind = self._lines, self._kind
        if not lines and partial.lstrip(" ").startswith(">"):
            kind = "quote"
        table_row = _TABLE_ROW_LIKE.match(partial)
        if kind != "table" and lines and _TABLE_ROW_LIKE.match(lines[-1]):
            lines = lines[:-1]  # the header of a table, it may be: the next line tells
        elif kind != "table" and partial and not table_row and not _UNDECIDED.match(partial):
            lines = [*lines, partial]
        text = _source(lines)
        return Block(kind, text, closed=False) if text else None


def split_blocks(text: str) -> list[Block]:
    """The blocks of a whole text, the same as streaming it gives."""
    splitter = BlockSplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.blocks


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _source(lines: list[str]) -> str:
    end = len(lines)
    while end and is_blank(lines[end - 1]):
        end -= 1
    return "\n".join(lines[:end])


def _code(lines: list[str], indent: int) -> str:
    """The code of a fence; lines lose as many leading spaces as the fence has."""
    if not indent:
        return "\n".join(lines)
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines)
