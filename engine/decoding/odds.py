"""How likely a looked-up token is right, by how many tokens before it were matched: learned from every foreseen token.

Whether a lookup was right is known whenever it foresaw a token, whoever proposed in the end, so nothing is spent on finding out.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

CLASSES = (0, 1, 2, 3, 4, 6, 9, 17, 33)  # each reaches to the next; 0 and 1: going on behind a single changed token
FIRST_GUESS = (0.2, 0.2, 0.45, 0.65, 0.7, 0.85, 0.87, 0.95, 0.98)
LONG_RUN = 0.02  # weight of one foreseen token in the long run
PRIOR = 4.0  # how many foreseen tokens the long run counts for at the start of an answer
FORGET = 0.9  # weight of an outcome against the next of its class


class LookupOdds:
    """Odds across answers, one a class of matched length; ``begin`` starts an answer."""

    def __init__(self) -> None:
        self._long_run = list(FIRST_GUESS)
        self.begin()

    def begin(self) -> None:
        """A new answer: it is expected to be like the long run."""
        self._right = [PRIOR * chance for chance in self._long_run]
        self._seen = [PRIOR] * len(CLASSES)

    def chance(self, matched: int) -> float:
        """The chance that the token foreseen after ``matched`` tokens is right."""
        index = bisect.bisect_right(CLASSES, matched) - 1
        return self._right[index] / self._seen[index]

    def observe(self, outcomes: Sequence[tuple[int, bool]]) -> None:
        """What came of foreseen tokens: how many tokens were matched before each, and whether it was right."""
        for matched, right in outcomes:
            index = bisect.bisect_right(CLASSES, matched) - 1
            self._right[index] = self._right[index] * FORGET + right
            self._seen[index] = self._seen[index] * FORGET + 1
            self._long_run[index] += LONG_RUN * (right - self._long_run[index])

    def expected(self, matched: int, widths: Sequence[int]) -> list[float]:
        """Tokens that a block of each of the ascending ``widths`` slots is expected to commit, its anchor's successor included."""
        tokens, standing, slots, results = 1.0, 1.0, 1, []
        for width in widths:
            for slot in range(slots, width):
                standing *= self.chance(matched + slot - 1)
                tokens += standing
            slots = width
            results.append(tokens)
        return results
