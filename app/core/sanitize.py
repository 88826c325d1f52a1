"""Makes any text safe to keep and to show, and loses nothing that can be read."""

from __future__ import annotations

import re

from app.core.graphemes import safe_cut

_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BREAK = "\u200b"


def clean_text(text: str) -> str:
    """``text`` without what breaks storage and layout.

    Lone surrogates become U+FFFD (two that form a pair become the character they stand for), every kind of line end
    becomes a newline, and control characters other than newline and tab are removed.
    """
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", _NEWLINE.sub("\n", text))


def break_long_runs(text: str, limit: int = 2000) -> str:
    """``text`` for display, with a zero-width space in every run of more than ``limit`` (at least 1) characters.

    Qt's layout takes time quadratic in a run without a space. Never store or copy the result: see ``without_breaks``.
    """
    return re.sub(rf"\S{{{limit + 1},}}", lambda run: _broken(run.group(), limit), text)


def without_breaks(shown: str, source: str) -> str:
    """What ``break_long_runs`` made of a part of ``source``, as it was written; as it is where ``source`` has such spaces."""
    return shown if BREAK in source else shown.replace(BREAK, "")


def cut_text(text: str, limit: int) -> list[str]:
    """``text`` in pieces of at most ``limit`` characters, cut at line ends (which go), else at spaces, else anywhere."""
    pieces, start = [], 0
    while len(text) - start > limit:
        line, space = text.rfind("\n", start + 1, start + limit), text.rfind(" ", start + 1, start + limit)
        if line < start + limit // 2 and space > line:
            cut = space + 1
        else:
            cut = line if line > 0 else start + safe_cut(text[start : start + limit + 1], limit)
        pieces.append(text[start:cut])
        start = cut + (text[cut] == "\n")
    return [*pieces, text[start:]]


def _broken(run: str, limit: int) -> str:
    parts, start = [], 0
    while len(run) - start > limit:
        # The look-back needs a few characters only; slicing the whole rest each time would be quadratic itself.
        cut = start + safe_cut(run[start : start + limit + 1], limit)
        parts.append(run[start:cut])
        start = cut
    return BREAK.join([*parts, run[start:]])
