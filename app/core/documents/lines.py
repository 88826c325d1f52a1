"""Puts the pieces of text that a page draws into lines: cells of a row together, columns one after the other."""

from __future__ import annotations

import itertools
import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

Matrix = Sequence[float]  # a, b, c, d, e, f: x' = a x + c y + e, y' = b x + d y + f
NARROW, NORMAL, BROAD, WIDE = 0.28, 0.52, 0.7, 1.0  # of a character, in its size
CELL_GAP, WORD_GAP = 1.0, 0.15  # in a line, in its size
FEWEST_ROWS = 5  # that two columns have side by side
_PRESENTATION = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]+")  # ligatures and joined letters that stand for plain ones
_BLANKS = re.compile(r"[\t\u00a0 ]+")


@dataclass(slots=True)
class Run:
    """Text at ``start``, in points along the line. ``end`` is exact where the page told it, else None."""

    text: str
    start: float
    size: float
    end: float | None = None

    @property
    def right(self) -> float:
        """Where it ends, as far as that is known."""
        return self.end if self.end is not None else self.start + self.size * sum(map(_width, self.text))


@dataclass(slots=True)
class Row:
    """The runs on one baseline; ``height`` is where that lies across the line's direction, upwards."""

    direction: tuple[float, float]
    height: float
    runs: list[Run] = field(default_factory=list)

    @property
    def size(self) -> float:
        """The size of its letters in points."""
        return self.runs[0].size

    def text(self, low: float = -math.inf, high: float = math.inf) -> str:
        """The runs that start from ``low`` up to ``high``, cells set apart by tabs."""
        joined, before = "", None
        for run in self.runs:
            if low <= run.start < high:
                joined += (_between(before, run) if before else "") + run.text.strip()
                before = run
        return joined


class PageText:
    """Takes what ``extract_text`` of pypdf tells a visitor, in the order of the page."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._goes_on = False

    def add(self, text: str, outer: Matrix, inner: Matrix, size: float) -> None:
        """A piece of one line under the matrices of the page and of the text; a newline at its end ends the line."""
        a, b, c, d, x, y = _product(inner, outer)
        length, points = math.hypot(a, b), size * math.hypot(c, d)
        if length and all(map(math.isfinite, (length, points, x, y))):
            direction = (round(a / length, 2), round(b / length, 2))
            along, height = x * direction[0] + y * direction[1], y * direction[0] - x * direction[1]
            self._place(_BLANKS.sub(" ", text.rstrip("\n")), direction, along, height, points)
        if text.endswith("\n"):
            self._goes_on = False

    def _place(self, text: str, direction: tuple[float, float], along: float, height: float, size: float) -> None:
        row = self._rows[-1] if self._rows else None
        if row is not None and not (row.direction == direction and abs(row.height - height) < 0.3 * max(row.size, size)):
            row = None  # another line, unless this one goes on: raised letters stand a little higher
        if not text.strip():
            if self._goes_on and text:
                self._rows[-1].runs[-1].text += " "
            elif self._goes_on and row is not None:
                _moved_to(row.runs[-1], along)
        elif row is not None and row.runs[-1].text.strip() == text.strip() and abs(along - row.runs[-1].start) < 0.1 * size:
            self._goes_on = True  # drawn twice to look bold
        elif self._goes_on and not text.startswith(" "):
            last = self._rows[-1].runs[-1]
            last.text, last.end = last.text + text, None
        elif self._goes_on or (row is not None and (along > row.runs[-1].start or _is_leftward(text))):
            self._rows[-1].runs.append(Run(text, along, size))
            self._goes_on = True
        else:
            self._rows.append(Row(direction, height, [Run(text, along, size)]))
            self._goes_on = True

    def text(self) -> str:
        """The page's lines, with an empty one where the page leaves more room."""
        rows = self._rows
        gutter = _gutter(rows)
        if gutter is None:
            return _lines([(row, row.text()) for row in rows])
        places = [place for place, row in enumerate(rows) if _crosses(row, gutter)]
        before, beside, after = rows[: places[0]], rows[places[0] : places[-1] + 1], rows[places[-1] + 1 :]
        ordered = [(row, row.text()) for row in before]
        ordered += [(row, row.text(high=gutter)) for row in beside]
        ordered += [(row, row.text(low=gutter)) for row in beside]
        return _lines([*ordered, *((row, row.text()) for row in after)])


def _moved_to(run: Run, along: float) -> None:
    """The pen stands at ``along``, before the last character of ``run``."""
    if along > run.start or len(run.text) == 1:
        run.end = along + run.size * _width(run.text[-1])
    elif along < run.start and run.end is None and _is_leftward(run.text):
        run.text, run.end = run.text[::-1], run.start  # drawn as it is read, and turned by pypdf as if it were not


def _is_leftward(text: str) -> bool:
    return any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)


def _width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return WIDE
    if char in "iljtfrI.,;:'!|()[] -":
        return NARROW
    return BROAD if char.isupper() or char in "mw" else NORMAL


def _between(before: Run, run: Run) -> str:
    gap = (run.start - before.right) / max(before.size, 0.1)
    unsure = 0.0 if before.end is not None else 0.1 * sum(map(_width, before.text))
    if gap > CELL_GAP + unsure:
        return "\t"
    apart = gap >= WORD_GAP or before.end is None or before.text.endswith(" ") or run.text.startswith(" ")
    return " " if apart or _is_leftward(before.text) else ""


def _crosses(row: Row, gutter: float) -> bool:
    return row.runs[0].start < gutter and any(abs(run.start - gutter) <= 2 for run in row.runs[1:])


def _gutter(rows: list[Row]) -> float | None:
    """Where a second column of prose begins that is drawn row by row with the first; None where the rows are a table's or none."""
    broken = [row for row in rows if len(row.runs) > 1]
    starts = Counter(round(run.start) for row in broken for run in row.runs[1:])
    if not starts:
        return None
    gutter, _count = starts.most_common(1)[0]
    beside = [row for row in broken if _crosses(row, gutter - 1)]
    if len(beside) < max(FEWEST_ROWS, 0.8 * len(broken)):
        return None
    for side in ([row.text(high=gutter - 1) for row in beside], [row.text(low=gutter - 1) for row in beside]):
        # Lines of prose mostly begin in the middle of a sentence; cells do not, and are short.
        if statistics.fmean(map(len, side)) < 20 or sum(text[:1].islower() for text in side) < 0.4 * len(side):
            return None
    return gutter - 1


def _lines(rows: list[tuple[Row, str]]) -> str:
    rows = [(row, text) for row, text in rows if text]
    steps = [above.height - row.height for (above, _), (row, _) in itertools.pairwise(rows)]
    usual = statistics.median([step for step in steps if step > 0] or [0.0])
    parts = [rows[0][1]] if rows else []
    for step, (row, text) in zip(steps, rows[1:], strict=True):
        parts.append(("\n\n" if step > max(1.25 * usual, 1.3 * row.size) else "\n") + text)
    return _PRESENTATION.sub(lambda found: unicodedata.normalize("NFKC", found.group()), "".join(parts))


def _product(inner: Matrix, outer: Matrix) -> tuple[float, float, float, float, float, float]:
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m
