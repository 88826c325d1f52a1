"""What the speculative loop needs of a drafter. A drafter is shared; a session belongs to one request and holds its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import mlx.core as mx

from engine.events import Mode

Draw = Callable[[mx.array, int, mx.array | None], mx.array]
"""Proposals [L] from a draft's logits [L, K] of the token ids [K] (None: all), the first row for the absolute position."""


class DraftSession(Protocol):
    """Proposals for one answer. Positions are absolute token positions; the caller passes them, nothing is counted here."""

    def prefill(self, taps: mx.array | None, position: int) -> list[mx.array]:
        """Takes prompt rows ``taps`` [L, n*H] whose first is at ``position``; returns arrays to evaluate."""

    def restore(self, features: mx.array, position: int) -> list[mx.array]:
        """Takes prompt rows as ``Drafter.features`` [L, H] of their taps, as ``prefill`` would have; returns arrays to evaluate."""

    def first_seen(self, position: int) -> int:
        """Position of the first row that a block whose anchor stands at ``position`` or later can still see."""

    def skip_to(self, position: int) -> None:
        """The next rows given begin at ``position``; those between were not run."""

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        """Proposes up to ``length`` tokens [k] to follow ``anchor`` [1], which stands at ``position``.

        ``taps`` [m, n*H] are the rows committed since the last call, the last of them at ``position - 1``.
        ``committed`` are all ids of prompt and answer, anchor included. None: nothing to propose this cycle.
        """


class Recall(Protocol):
    """What stood in one prompt and answer before: the memory that lookup proposes from. All on the host."""

    @property
    def matched(self) -> int | None:
        """How many of the newest tokens stood there before, None where there is nothing to propose."""

    def extend(self, tokens: Sequence[int]) -> list[tuple[int, bool]]:
        """Takes the next committed ``tokens``. For each that was foreseen: ``matched`` before it, and whether it came so."""

    def propose(self, length: int) -> list[int]:
        """The ``length`` tokens that followed; only where something is ``matched``."""


class Drafter(Protocol):
    """Anything that proposes tokens."""

    mode: Mode
    name: str
    taps: tuple[int, ...]
    block_length: int

    def session(self, draw: Draw | None = None) -> DraftSession | None:
        """Fresh state for one request; None for lookup, whose proposals come from a ``Recall``.

        Drafters with logits propose by ``draw``, without it their likeliest tokens.
        """

    def features(self, taps: mx.array) -> mx.array | None:
        """What a session keeps of ``taps`` [L, n*H]: rows [L, H] that ``restore`` takes again. None: it keeps nothing of them."""
