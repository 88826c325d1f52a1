"""The block-length controller: how many tokens to propose next, or none, from measured costs and the acceptance seen.

With p the chance that a proposal is right given those before it were, a block of L slots commits (1 - p^L) / (1 - p) tokens.
The length with the most expected tokens a second wins; when plain decoding has more, speculation is parked and tried again
after a while. Nothing here knows MLX.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.decoding.costs import CostCurve

FORGET = 0.95  # weight of a cycle's acceptance against the next one's: a topic lasts about twenty cycles
PRIOR_ATTEMPTS = 4.0  # how many proposals the long-run acceptance counts for at the start of an answer
FIRST_GUESS = 0.6  # acceptance assumed before anything was seen
LONG_RUN = 0.01  # weight of one proposal in the long-run acceptance
DRIFT = 0.1  # weight of one observed time against the measured cost
HYSTERESIS = 1.03  # a change of mind must promise this much
FIRST_PAUSE = 8  # plain steps before the first try after parking; each further pause is twice as long ...
PROBE_SHARE = 0.015  # ... until trying takes no more than this share of the time
BEST_CASE = 0.98  # acceptance beyond which nothing is expected
PROBE_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """``length`` slots with the anchor for the next cycle; 1 parks for ``steps`` plain steps."""

    length: int
    steps: int = 1

    @property
    def parked(self) -> bool:
        return self.length == 1


class FixedLength:
    """Always the same block."""

    reason = "the block length is fixed"

    def __init__(self, length: int):
        self._choice = Choice(length)

    @property
    def block_length(self) -> int:
        return self._choice.length

    def choose(self) -> Choice:
        return self._choice

    def observe(self, length: int, proposed: int, accepted: int, seconds: float) -> None:
        """Nothing to learn."""

    def observe_plain(self, steps: int, seconds: float) -> None:
        """Nothing to learn."""


class Controller:
    """State of one pair across answers; ``begin`` starts one. Times in seconds."""

    def __init__(self, costs: CostCurve, max_length: int):
        self.costs = costs
        self._lengths = [length for length in range(2, max_length + 1) if length <= costs.widest]
        self._long_run = FIRST_GUESS
        self._cycle_drift = self._plain_drift = 1.0
        self.begin()

    def begin(self) -> None:
        """A new answer: what is known of its acceptance is the long run's."""
        self._accepted, self._attempts = self._long_run * PRIOR_ATTEMPTS, PRIOR_ATTEMPTS
        self._length = max(self._lengths, key=self._rate)
        self._pause = FIRST_PAUSE
        self._due = False  # a parked stretch is over, the next cycle is a probe
        self.parked = False

    @property
    def block_length(self) -> int:
        """Slots of the block in use, 0 while parked; a probe does not count."""
        return 0 if self.parked else self._length

    @property
    def acceptance(self) -> float:
        """The chance that the next proposal is right."""
        return min(BEST_CASE, self._accepted / self._attempts)

    @property
    def reason(self) -> str:
        """Why speculation is parked, or why this length, in words."""
        if self.parked:
            return f"Plain decoding is faster here: the draft's next token is right {self.acceptance:.0%} of the time"
        return f"{self._length - 1} tokens are proposed: the draft's next token is right {self.acceptance:.0%} of the time"

    def choose(self) -> Choice:
        """What to do next. Call once a cycle."""
        best = max(self._lengths, key=self._rate)
        plain = self._plain_rate()
        if self._rate(best, self._hopeful()) < plain * (HYSTERESIS if self.parked else 1.0):
            return self._park_or_probe()
        if self.parked or self._rate(best) > self._rate(self._length) * HYSTERESIS:
            self._length = best
        self.parked, self._due, self._pause = False, False, FIRST_PAUSE
        return Choice(self._length)

    def observe(self, length: int, proposed: int, accepted: int, seconds: float) -> None:
        """One cycle of ``length`` slots: ``accepted`` of ``proposed``, taking ``seconds`` (nan: not known)."""
        attempts = min(accepted + 1, proposed)  # what follows the first miss says nothing
        self._accepted = self._accepted * FORGET + accepted
        self._attempts = self._attempts * FORGET + attempts
        for index in range(attempts):
            self._long_run += LONG_RUN * ((index < accepted) - self._long_run)
        if math.isfinite(seconds):
            self._cycle_drift += DRIFT * (_ratio(seconds, self.costs.cycle(length)) - self._cycle_drift)

    def observe_plain(self, steps: int, seconds: float) -> None:
        """A parked stretch of ``steps`` steps took ``seconds``."""
        if steps and math.isfinite(seconds):
            weight = 1 - (1 - DRIFT) ** steps
            self._plain_drift += weight * (_ratio(seconds / steps, self.costs.verify(1)) - self._plain_drift)

    def _park_or_probe(self) -> Choice:
        could_pay = any(self._rate(length, BEST_CASE) > self._plain_rate() for length in self._lengths)
        if self.parked and self._due and could_pay:
            self._due = False
            return Choice(self._probe_length())
        pause = min(self._pause, self._longest_pause()) if could_pay else self._longest_pause()
        self._pause = 2 * pause
        self.parked, self._due = True, True
        return Choice(1, pause)

    def _probe_length(self) -> int:
        """The short block that comes nearest to paying."""
        return max((length for length in self._lengths if length <= max(PROBE_SLOTS, self._lengths[0])), key=self._rate)

    def _longest_pause(self) -> int:
        """Plain steps after which the time lost on a probe that gained nothing is ``PROBE_SHARE`` of the whole."""
        lost = self.costs.cycle(self._probe_length()) * self._cycle_drift * self._plain_rate() - 1
        return max(FIRST_PAUSE, round(lost / PROBE_SHARE))

    def _hopeful(self) -> float:
        """Acceptance one standard error above what was seen: parking by bad luck would last, going on is soon put right."""
        p = self.acceptance
        return min(BEST_CASE, p + math.sqrt(p * (1 - p) / self._attempts))

    def _rate(self, length: int, acceptance: float | None = None) -> float:
        p = self.acceptance if acceptance is None else acceptance
        return (1 - p**length) / (1 - p) / (self.costs.cycle(length) * self._cycle_drift)

    def _plain_rate(self) -> float:
        return 1 / (self.costs.verify(1) * self._plain_drift)


def _ratio(observed: float, expected: float) -> float:
    return min(4.0, max(0.25, observed / expected))  # one stall of the machine must not decide
