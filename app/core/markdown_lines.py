"""Which lines of a Markdown text belong to which top-level block, as markdown-it-py sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

Kind = Literal["prose", "code", "table", "quote", "rule"]

_KINDS: dict[str, Kind] = {"fence": "code", "table_open": "table", "blockquote_open": "quote", "hr": "rule"}
_LISTS = ("bullet_list_open", "ordered_list_open")
# Blank lines do not end these: what follows may still belong to them.
_SPANNING = (*_LISTS, "code_block", "html_block")

_markdown = MarkdownIt("commonmark").enable("table")
# Inline markup is the drawing widget's business.
_markdown.core.ruler.enableOnly(["normalize", "block"])


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A top-level block: lines ``start`` to ``end`` (exclusive), blank lines at its end not counted.

    ``settled``: no further line can belong to it. ``markup``, ``indent`` and ``language`` describe a fence.
    ``item_starts`` are the first lines of a list's items.
    """

    kind: Kind
    start: int
    end: int
    settled: bool = False
    markup: str = ""
    indent: int = 0
    language: str = ""
    item_starts: tuple[int, ...] = ()

    @property
    def open_fence(self) -> bool:
        """Whether this is a fence without its closing line."""
        return bool(self.markup) and not self.settled


def is_blank(line: str) -> bool:
    """Whether Markdown takes ``line`` for blank."""
    return not line.strip(" \t\r")


def closes_fence(line: str, markup: str) -> bool:
    """Whether ``line`` closes a fence that was opened with ``markup``."""
    return bool(re.fullmatch(rf" {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t\r]*", line))


def parse_lines(lines: list[str]) -> list[LineSpan]:
    """The top-level blocks of ``lines``, in order; together they hold every line that is not blank."""
    # The parser would count a carriage return as a line end, and its line numbers would no longer be ours.
    tokens = _markdown.parse("\n".join(lines).replace("\r", " "))
    spans: list[LineSpan] = []
    position = 0
    for i, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0 and token.map is not None:
            # Link definitions leave no token: lines between two tokens are theirs.
            spans += _untaken(lines, position, token.map[0])
            spans.append(_span(lines, tokens, i))
            position = token.map[1]
    return spans + _untaken(lines, position, len(lines))


def _span(lines: list[str], tokens: list[Token], index: int) -> LineSpan:
    token = tokens[index]
    assert token.map is not None
    start, end = token.map
    kind = _KINDS.get(token.type, "prose")
    if kind == "code":
        return _fence_span(lines, token, start, end)
    cut_off = end < len(lines) and is_blank(lines[-1]) and token.type not in _SPANNING
    settled = cut_off or token.type in ("heading_open", "hr")
    items = _item_starts(tokens, index) if token.type in _LISTS else ()
    return LineSpan(kind, start, _without_blank_end(lines, start, end), settled, item_starts=items)


def _fence_span(lines: list[str], token: Token, start: int, end: int) -> LineSpan:
    closed = end - start > 1 and closes_fence(lines[end - 1], token.markup)
    indent = len(lines[start]) - len(lines[start].lstrip(" "))
    words = token.info.split()
    return LineSpan("code", start, end, closed, token.markup, indent, words[0] if words else "")


def _item_starts(tokens: list[Token], index: int) -> tuple[int, ...]:
    starts = []
    for token in tokens[index + 1 :]:
        if token.level == 0:
            break
        if token.level == 1 and token.type == "list_item_open" and token.map is not None:
            starts.append(token.map[0])
    return tuple(starts)


def _untaken(lines: list[str], start: int, end: int) -> list[LineSpan]:
    """Prose spans of the lines ``start`` to ``end``, cut at blank lines."""
    spans = []
    for blank, group in groupby(range(start, end), key=lambda i: is_blank(lines[i])):
        if not blank:
            taken = list(group)
            spans.append(LineSpan("prose", taken[0], taken[-1] + 1, settled=taken[-1] + 1 < len(lines)))
    return spans


def _without_blank_end(lines: list[str], start: int, end: int) -> int:
    while end > start and is_blank(lines[end - 1]):
        end -= 1
    return end
