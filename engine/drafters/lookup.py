"""Lookup drafting: what followed the same few tokens earlier in prompt or answer is proposed again. Needs no draft model."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from engine.drafters.protocol import Draw
from engine.events import Mode

NGRAM = 3


class LookupDrafter:
    """Works with any target that can roll back."""

    mode: Mode = "lookup"
    name = "lookup"
    taps: tuple[int, ...] = ()

    def __init__(self, block_length: int = 16):
        self.block_length = block_length

    def session(self, draw: Draw | None = None) -> LookupSession:
        return LookupSession()

    def features(self, taps: mx.array) -> mx.array | None:
        return None


class LookupSession:
    """Index of every n-gram's latest earlier place in one request."""

    def __init__(self) -> None:
        self._follower: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def prefill(self, taps: mx.array | None, position: int) -> list[mx.array]:
        return []

    def restore(self, features: mx.array, position: int) -> list[mx.array]:
        return []

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        for end in range(max(self._indexed, NGRAM), len(committed)):  # the newest n-gram itself stays out
            self._follower[tuple(committed[end - NGRAM : end])] = end
        self._indexed = len(committed)
        start = self._follower.get(tuple(committed[-NGRAM:]))
        found = committed[start : start + length] if start is not None else []
        return mx.array(list(found), dtype=anchor.dtype) if found else None
