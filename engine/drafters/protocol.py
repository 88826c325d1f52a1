"""What the speculative loop needs of a drafter. A drafter is shared; a session belongs to one request and holds its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

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


class Foreseen(NamedTuple):
    """What speaks for a token that a lookup foresees."""

    matched: int  # tokens before it that stood before the one it is copied from
    doubtful: bool = False  # what was foreseen behind the same two tokens was wrong before


class Recall(Protocol):
    """What stood in one prompt and answer before: the memory that lookup proposes from. All on the host."""

    @property
    def ahead(self) -> Sequence[Foreseen]:
        """What can be proposed, token by token; empty where nothing is foreseen."""

    def extend(self, tokens: Sequence[int]) -> list[tuple[Foreseen, bool]]:
        """Takes the next committed ``tokens``. For each that was foreseen: what spoke for it, and whether it came so."""

    def propose(self, length: int) -> list[int]:
        """The first of at most ``length`` tokens that followed; only where something is ``ahead``."""


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
