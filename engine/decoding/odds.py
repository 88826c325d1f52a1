"""How likely a looked-up token is right, by what speaks for it: learned from every foreseen token.

Whether a lookup was right is known whenever it foresaw a token, whoever proposed in the end, so nothing is spent on finding out.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import cache

from engine.drafters.protocol import Foreseen

CLASSES = (0, 1, 2, 3, 4, 6, 9, 17, 33)  # of matched length, each reaches to the next; 0 and 1: behind a single changed token
FIRST_GUESS = (0.2, 0.2, 0.45, 0.65, 0.7, 0.85, 0.87, 0.95, 0.98)
DOUBTFUL_GUESS = (0.2, 0.2, 0.3, 0.45, 0.45, 0.65, 0.75, 0.95, 0.97)
LONG_RUN = 0.02  # weight of one foreseen token in the long run
PRIOR = 3.0  # how many foreseen tokens the long run counts for at the start of an answer
FORGET = 0.9  # weight of an outcome against the next of its class


class LookupOdds:
    """Odds across answers, one a class of matched length, doubtful or not; ``begin`` starts an answer."""

    def __init__(self) -> None:
        self._long_run = [*FIRST_GUESS, *DOUBTFUL_GUESS]
        self.begin()

    def begin(self) -> None:
        """A new answer: it is expected to be like the long run."""
        self._right = [PRIOR * chance for chance in self._long_run]
        self._seen = [PRIOR] * len(self._long_run)
        self._chances = list(self._long_run)

    def chance(self, foreseen: Foreseen) -> float:
        """The chance that a foreseen token is right."""
        return self._chances[_class(foreseen)]

    def observe(self, outcomes: Sequence[tuple[Foreseen, bool]]) -> None:
        """What came of foreseen tokens: what spoke for each, and whether it was right."""
        for foreseen, right in outcomes:
            index = _class(foreseen)
            self._right[index] = self._right[index] * FORGET + right
            self._seen[index] = self._seen[index] * FORGET + 1
            self._chances[index] = self._right[index] / self._seen[index]
            self._long_run[index] += LONG_RUN * (right - self._long_run[index])

    def expected(self, ahead: Sequence[Foreseen], widths: Sequence[int]) -> list[float]:
        """Tokens that a block of each of the ascending ``widths`` slots is expected to commit, its anchor's successor included.

        ``ahead`` has at least one token less than the widest has slots.
        """
        tokens, standing, slots, results = 1.0, 1.0, 1, []
        for width in widths:
            for foreseen in ahead[slots - 1 : width - 1]:
                standing *= self.chance(foreseen)
                tokens += standing
            slots = width
            results.append(tokens)
        return results


@cache
def _class(foreseen: Foreseen) -> int:
    return bisect.bisect_right(CLASSES, foreseen.matched) - 1 + (len(CLASSES) if foreseen.doubtful else 0)
