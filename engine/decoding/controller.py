"""The block-length controller: what to propose next and how much, or nothing, from measured costs and the acceptance seen.

With p the chance that a drafted token is right given those before it were, a block of L slots commits (1 - p^L) / (1 - p)
tokens; what a looked-up block commits is ``LookupOdds``' estimate. The source and length with the most expected tokens a second
win; when plain decoding has more, the draft is parked and tried again after a while. Nothing here knows MLX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.decoding.costs import CostCurve
from engine.decoding.odds import LookupOdds
from engine.drafters.protocol import Foreseen
from engine.events import Source

FORGET = 0.95  # weight of a cycle's acceptance against the next one's: a topic lasts about twenty cycles
PRIOR_ATTEMPTS = 4.0  # how many proposals the long-run acceptance counts for at the start of an answer
FIRST_GUESS = 0.6  # acceptance assumed before anything was seen
LONG_RUN = 0.01  # weight of one proposal in the long-run acceptance
DRIFT = 0.1  # weight of one observed time against the measured cost
HYSTERESIS = 1.03  # a change of mind must promise this much
FIRST_PAUSE = 8  # plain steps before the first try after parking, more where a try that gains nothing would ...
FIRST_SHARE = 0.05  # ... take more than this share of the time; each further pause is twice as long ...
PROBE_SHARE = 0.015  # ... until trying takes no more than this
PATIENCE = 1.0  # plain steps that drafting may be behind before it parks by what was seen alone
BEST_CASE = 0.98  # acceptance beyond which nothing is expected
PROBE_SLOTS = 4
STRETCH = 256  # plain steps at a time where only a match can end them


@dataclass(frozen=True, slots=True)
class Choice:
    """``length`` slots with the anchor for the next cycle, filled from ``source``; 1 slot: ``steps`` plain steps.

    ``idle``: the steps are plain because nothing is there to propose, not because it would be slower.
    """

    length: int
    steps: int = 1
    source: Source = "draft"
    idle: bool = False

    @property
    def plain(self) -> bool:
        return self.length == 1

    @property
    def parked(self) -> bool:
        return self.plain and not self.idle


class FixedLength:
    """Always the same block from the same source."""

    reason = "the block length is fixed"

    def __init__(self, length: int, source: Source = "draft"):
        self._choice = Choice(length, source=source)
        self._nothing = Choice(1, STRETCH, idle=True)

    @property
    def block_length(self) -> int:
        return self._choice.length

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        return self._choice if self._choice.source == "draft" or ahead else self._nothing

    def wakes(self, ahead: Sequence[Foreseen]) -> bool:
        return bool(ahead)

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        """Nothing to learn."""

    def observe_plain(self, steps: int, seconds: float) -> None:
        """Nothing to learn."""

    def observe_foreseen(self, outcomes: Sequence[tuple[Foreseen, bool]]) -> None:
        """Nothing to learn."""


class Controller:
    """State of one pair across answers; ``begin`` starts one. Times in seconds.

    ``max_length`` bounds the draft's block; below 2 there is no draft. ``odds`` None: nothing is looked up.
    """

    def __init__(self, costs: CostCurve, max_length: int, odds: LookupOdds | None = None):
        self.costs, self._odds = costs, odds
        self._all_lengths = [length for length in range(2, max_length + 1) if length <= costs.widest]
        self._long_run = FIRST_GUESS
        self._cycle_drift = self._plain_drift = 1.0
        self._lookup_drift: float | None = None
        self.begin()

    def begin(self, widths: Sequence[int] | None = None) -> None:
        """A new answer, with blocks of ``widths`` only where given: what is known of its acceptance is the long run's."""
        self._lengths = [length for length in self._all_lengths if widths is None or length in widths]
        self._widths = [width for width in self.costs.widths if width > 1 and (widths is None or width in widths)]
        self._accepted, self._attempts = self._long_run * PRIOR_ATTEMPTS, PRIOR_ATTEMPTS
        if self._odds is not None:
            self._odds.begin()
        self._length = max(self._lengths, key=self._rate, default=self.costs.widest)
        self._behind = 0.0  # plain steps that drafting has lost since it last paid
        self._pause = 0  # plain steps of the next pause; 0: a first one
        self._left = 0  # plain steps before the next probe
        self._due = False  # a pause is over, the next cycle is a probe
        self.parked = False

    @property
    def block_length(self) -> int:
        """Slots of the draft's block in use, of the longest lookup where there is no draft; 0 while parked, probes apart."""
        return 0 if self.parked else self._length

    @property
    def acceptance(self) -> float:
        """The chance that the draft's next token is right."""
        return min(BEST_CASE, self._accepted / self._attempts)

    @property
    def reason(self) -> str:
        """Why speculation is parked, or why this length, in words."""
        if not self._lengths:
            if self.parked:
                return "Plain decoding is faster here: what repeats itself goes on differently"
            return f"Up to {self._length - 1} tokens are looked up where the text repeats itself"
        right = f"the draft's next token is right {self.acceptance:.0%} of the time"
        return f"Plain decoding is faster here: {right}" if self.parked else f"{self._length - 1} tokens are proposed: {right}"

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        """What to do next, where a lookup has ``ahead`` to propose. Call once a cycle or plain stretch."""
        width, lookup = self._best_lookup(ahead)
        plain = self._plain_rate()
        if not self._lengths:
            self.parked = self._longest_lookup() <= plain
            return Choice(width, source="lookup") if self.wakes(ahead) else Choice(1, STRETCH, idle=not self.parked)
        best = max(self._lengths, key=self._rate)
        if self._rate(best, self._hopeful()) < plain * (HYSTERESIS if self.parked else 1.0):
            return Choice(width, source="lookup") if self.wakes(ahead) else self._park_or_probe()
        if self.parked or self._rate(best) > self._rate(self._length) * HYSTERESIS:
            self._length = best
        self.parked, self._due, self._pause = False, False, 0
        looks_better = lookup > self._rate(self._length) and self.wakes(ahead)
        return Choice(width, source="lookup") if looks_better else Choice(self._length)

    def wakes(self, ahead: Sequence[Foreseen]) -> bool:
        """Whether a plain stretch should end early, because what is ``ahead`` pays."""
        return self._best_lookup(ahead)[1] > self._plain_rate() * HYSTERESIS

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        """One cycle of ``choice``: ``accepted`` of ``proposed``, taking ``seconds`` (nan: not known)."""
        if choice.source == "lookup":
            if math.isfinite(seconds):
                ratio = _ratio(seconds, self.costs.verify(proposed + 1))
                known = self._lookup_drift
                self._lookup_drift = ratio if known is None else known + DRIFT * (ratio - known)
            return
        self._behind = max(0.0, self._behind + self._plain_steps(choice.length) - accepted - 1)
        attempts = min(accepted + 1, proposed)  # what follows the first miss says nothing
        self._accepted = self._accepted * FORGET + accepted
        self._attempts = self._attempts * FORGET + attempts
        for index in range(attempts):
            self._long_run += LONG_RUN * ((index < accepted) - self._long_run)
        if math.isfinite(seconds):
            self._cycle_drift += DRIFT * (_ratio(seconds, self.costs.cycle(choice.length)) - self._cycle_drift)

    def observe_plain(self, steps: int, seconds: float) -> None:
        """A plain stretch of ``steps`` steps took ``seconds``."""
        self._left = max(0, self._left - steps)
        if steps and math.isfinite(seconds):
            weight = 1 - (1 - DRIFT) ** steps
            self._plain_drift += weight * (_ratio(seconds / steps, self.costs.verify(1)) - self._plain_drift)

    def observe_foreseen(self, outcomes: Sequence[tuple[Foreseen, bool]]) -> None:
        """Tokens that a lookup foresaw, proposed or not: what spoke for each, and whether it was right."""
        if self._odds is not None:
            self._odds.observe(outcomes)

    def _best_lookup(self, ahead: Sequence[Foreseen]) -> tuple[int, float]:
        """The width of the best looked-up block and its tokens a second; a rate of 0 where nothing can be looked up."""
        if not ahead or self._odds is None or not self._widths:
            return 1, 0.0
        drift = min(self._cycle_drift, self._plain_drift) if self._lookup_drift is None else self._lookup_drift
        widest = len(ahead) + 1
        widths = sorted({min(width, widest) for width in self._widths})
        tokens = self._odds.expected(ahead, widths)
        rates = [count / (self.costs.verify(width) * drift) for width, count in zip(widths, tokens, strict=True)]
        best = max(range(len(rates)), key=rates.__getitem__)
        return widths[best], rates[best]

    def _longest_lookup(self) -> float:
        """Tokens a second of the best looked-up block after the longest match there is."""
        return self._best_lookup([Foreseen(self.costs.widest)] * (self.costs.widest - 1))[1]

    def _park_or_probe(self) -> Choice:
        could_pay = any(self._rate(length, BEST_CASE) > self._plain_rate() for length in self._lengths)
        if self.parked and self._left:  # a match ended the pause early
            return Choice(1, self._left)
        if self.parked and self._due and could_pay:
            self._due, self._behind = False, 0.0
            return Choice(self._probe_length())
        longest = self._pause_for(PROBE_SHARE)
        pause = min(self._pause or self._pause_for(FIRST_SHARE), longest) if could_pay else longest
        self._pause, self._left = 2 * pause, pause
        self.parked, self._due = True, True
        return Choice(1, pause)

    def _probe_length(self) -> int:
        """The short block that comes nearest to paying."""
        return max((length for length in self._lengths if length <= max(PROBE_SLOTS, self._lengths[0])), key=self._rate)

    def _pause_for(self, share: float) -> int:
        """Plain steps after which the time lost on a probe that gained nothing is ``share`` of the whole."""
        return max(FIRST_PAUSE, round((self._plain_steps(self._probe_length()) - 1) / share))

    def _plain_steps(self, length: int) -> float:
        """How many plain steps a cycle of ``length`` slots takes as long as."""
        return self.costs.cycle(length) * self._cycle_drift * self._plain_rate()

    def _hopeful(self) -> float:
        """Acceptance one standard error above what was seen, as parking by bad luck would last; no more once that cost enough."""
        p = self.acceptance
        return p if self._behind > PATIENCE else min(BEST_CASE, p + math.sqrt(p * (1 - p) / self._attempts))

    def _rate(self, length: int, acceptance: float | None = None) -> float:
        p = self.acceptance if acceptance is None else acceptance
        return (1 - p**length) / (1 - p) / (self.costs.cycle(length) * self._cycle_drift)

    def _plain_rate(self) -> float:
        return 1 / (self.costs.verify(1) * self._plain_drift)


def _ratio(observed: float, expected: float) -> float:
    return min(4.0, max(0.25, observed / expected))  # one stall of the machine must not decide
