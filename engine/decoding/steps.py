"""What the two loops share: their limits and the record of one step."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import cast

import mlx.core as mx

from engine.decoding.sampling import Sampler
from engine.drafters.protocol import DraftSession
from engine.targets.protocol import Cache, Target


def read_ids(ids: mx.array) -> list[int]:
    """Waits for the device and brings ``ids`` [L] to the host: the only place where a loop does."""
    return cast(list[int], ids.tolist())


@dataclass(frozen=True, slots=True)
class Step:
    """One cycle's outcome. ``tokens`` entered the answer; ``accepted`` of ``proposed`` came from the drafter.

    ``draft_s`` and ``verify_s`` are None except in a cycle that was timed part by part.
    """

    tokens: tuple[int, ...]
    proposed: int
    accepted: int
    draft_s: float | None = None
    verify_s: float | None = None


@dataclass(slots=True)
class Decoding:
    """Everything a loop works on. ``position`` is that of the anchor, the answer's first token, not yet run."""

    target: Target
    cache: Cache
    sampler: Sampler
    stop_ids: frozenset[int]
    max_tokens: int
    cancel: threading.Event
    position: int
    anchor: mx.array  # [1]
    committed: list[int]
    session: DraftSession | None = None
    taps: tuple[int, ...] = ()
    tap_rows: mx.array | None = None  # [1, n*H], the row before the anchor
    block_length: int = 0

    def cut(self, tokens: list[int], produced: int) -> tuple[list[int], bool]:
        """``tokens`` up to and with the first stop token and within the limit; True when that ends the answer."""
        tokens = tokens[: self.max_tokens - produced]
        for index, token in enumerate(tokens):
            if token in self.stop_ids:
                return tokens[: index + 1], True
        return tokens, produced + len(tokens) >= self.max_tokens
