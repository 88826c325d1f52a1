"""Cuts streaming Markdown into blocks so that only the last one is ever parsed or drawn again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from app.core.markdown_lines import Kind, LineSpan, closes_fence, is_blank, parse_lines

# A list longer than this (characters) is cut between its items, so that drawing its tail stays cheap.
LIST_LIMIT = 2000
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
        for piece in rest:
            line = "".join(self._partial)
            self._partial = [piece]
            self._take_line(line)

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

    def _take_line(self, line: str) -> None:
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
            self._keep(self._cut_list(last))
        self._parsed_at = self._line_chars
        self._fruitless = 0 if len(self._done) > before or self._fence else self._fruitless + 1

    def _cut_list(self, span: LineSpan) -> int:
        """Commits all but the last item of a long list; returns the first line that stays in the tail."""
        if len(span.item_starts) < 2 or sum(map(len, self._lines[span.start : span.end])) <= LIST_LIMIT:
            return span.start
        for start, end in pairwise(span.item_starts):
            self._commit(LineSpan(span.kind, start, end))
        return span.item_starts[-1]

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
