"""One prompt's way through the prefix cache: what it began with, and what its prefill adds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.drafters.protocol import Drafter
from engine.prefix.segment import Segment
from engine.prefix.snapshot import take_rows, take_state
from engine.targets.protocol import Cache

FEATURES = "features"  # the name of the draft's context features among a block's rows
STATE_EVERY = 1024  # tokens between the states kept of a long prompt, at least
STATE_SHARE = 4  # the states of one prompt may take about one part in so many of the memory budget


@dataclass(slots=True)
class Recording:
    """Begins with ``tokens`` of ``prompt`` out of the cache; ``source`` says from where, or why there are none.

    ``chain`` are the segments from the first token on, of which ``tip`` is the last block's key (the root's before any). States,
    where ``state_at`` is not None, are taken at those ends of blocks and now and then between. ``drafter`` gives the features of
    ``taps`` that are kept with a block.
    """

    prompt: Sequence[int]
    grid: int
    tip: str
    source: str
    budget: int
    drafter: Drafter | None
    chain: list[Segment] = field(default_factory=list)
    state_at: Collection[int] | None = None
    tokens: int = 0
    _last_state: int = 0

    @property
    def taps(self) -> tuple[int, ...]:
        """The target's layers that ``record`` must be given."""
        return self.drafter.taps if self.drafter is not None else ()

    def record(self, cache: Cache, start: int, stop: int, taps: mx.array | None, pending: list[mx.array]) -> mx.array | None:
        """Takes what the pass over tokens ``start`` to ``stop`` - 1 left behind, if they are a whole block.

        Adds the arrays to evaluate to ``pending`` and returns the features [L, H] of ``taps``, None where there are none.
        """
        features = None if self.drafter is None or taps is None else self.drafter.features(taps)
        if start % self.grid or stop - start != self.grid:
            return features
        rows = take_rows(cache, start, stop)
        if features is not None:
            rows[FEATURES] = features
        block = Segment(self.tip, start, tuple(self.prompt[start:stop]), rows, {})
        self.tip = block.key
        self.chain.append(block)
        pending += rows.values()
        if self.state_at is not None:
            self._take_state(cache, stop, pending)
        return features

    def _take_state(self, cache: Cache, stop: int, pending: list[mx.array]) -> None:
        assert self.state_at is not None
        state = take_state(cache)
        size = sum(array.nbytes for array in state.values())
        every = max(STATE_EVERY, STATE_SHARE * size * len(self.prompt) // max(1, self.budget))
        if stop in self.state_at or stop - max(self.tokens, self._last_state) >= every:
            self.chain.append(Segment(self.tip, stop, (), {}, state))
            self._last_state = stop
            pending += state.values()
