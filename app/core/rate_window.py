"""Tokens per second over a sliding window, from cycles that deliver up to a block of tokens at once."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

WINDOW_S = 2.0
# Events may reach the window this much late without the rate showing it.
JITTER_S = 0.1


class RateWindow:
    """Spreads each cycle's tokens evenly over the time that the cycle took, so a burst does not make the rate jump.

    Times ``at_s`` are on the engine's clock, ``now`` on the caller's; the least delay seen links the two.
    """

    def __init__(self) -> None:
        self._offset = math.inf  # the caller's clock minus the engine's
        self._marks: deque[tuple[float, int]] = deque()  # (end of a cycle, tokens after the first up to there)
        self._frozen: float | None = None

    def heard(self, at_s: float, now: float) -> None:
        """Any event: sharpens the link between the clocks."""
        self._offset = min(self._offset, now - at_s)

    def start(self, at_s: float, now: float) -> None:
        """Decoding began; the first token, known now, is not counted."""
        self.heard(at_s, now)
        self._marks.append((at_s, 0))

    def add(self, tokens: int, at_s: float, now: float) -> None:
        """A cycle that ended at ``at_s`` committed ``tokens``."""
        self.heard(at_s, now)
        total = self._marks[-1][1] if self._marks else 0
        self._marks.append((at_s, total + tokens))
        # One mark at or before the window's start has to stay, to read the total there.
        while len(self._marks) > 2 and self._marks[1][0] <= at_s - WINDOW_S:
            self._marks.popleft()

    def freeze(self, now: float) -> None:
        """No event will follow: the rate stays what it is at ``now``."""
        self._frozen = now

    def tok_s(self, now: float) -> float:
        """Tokens per second at ``now``; sinks to 0 when cycles stop coming."""
        if len(self._marks) < 2:
            return 0.0
        if self._frozen is not None:
            now = self._frozen
        first, last = self._marks[0][0], self._marks[-1][0]
        # Between two cycles nothing is late yet: only a wait longer than the longest recent cycle counts as slower.
        patience = min(max(JITTER_S, *self._gaps()), WINDOW_S)
        end = max(last, now - self._offset - patience)
        begin = max(first, end - WINDOW_S)
        return (self._total_at(end) - self._total_at(begin)) / (end - begin) if end > begin else 0.0

    def _gaps(self) -> list[float]:
        times = [at_s for at_s, _ in self._marks]
        return [after - before for before, after in pairwise(times)]

    def _total_at(self, moment: float) -> float:
        before_s, before = self._marks[0]
        for at_s, total in self._marks:
            if at_s >= moment:
                span = at_s - before_s
                return before + (total - before) * ((moment - before_s) / span if span > 0 else 1.0)
            before_s, before = at_s, total
        return float(before)
