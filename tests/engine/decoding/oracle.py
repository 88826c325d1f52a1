"""A drafter for tests that knows the target's own answer and is right up to a chosen slot in each cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import mlx.core as mx

from engine.events import Mode


class OracleDrafter:
    """``right(cycle)`` proposals of each block are the target's own tokens, the others are wrong on purpose."""

    mode: Mode = "dflash"
    name = "oracle"

    def __init__(
        self, answer: Sequence[int], prompt_length: int, right: Callable[[int], int], block_length: int, taps: Iterable[int] = ()
    ):
        self.answer, self.prompt_length, self.right = list(answer), prompt_length, right
        self.block_length, self.taps = block_length, tuple(taps)
        self.positions: list[int] = []
        self.tap_rows: list[int] = []
        self.cycle = 0

    def session(self) -> OracleDrafter:
        return self

    def prefill(self, taps: mx.array | None, position: int) -> list[mx.array]:
        return []

    def features(self, taps: mx.array) -> mx.array | None:
        return None

    def restore(self, features: mx.array, position: int) -> list[mx.array]:
        return []

    def first_seen(self, position: int) -> int:
        return 0

    def skip_to(self, position: int) -> None:
        return None

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        self.positions.append(position)
        self.tap_rows.append(0 if taps is None else taps.shape[0])
        produced = len(committed) - self.prompt_length
        right = self.right(self.cycle)
        self.cycle += 1
        truth = self.answer[produced : produced + length]
        proposals = [token if index < right else token ^ 1 for index, token in enumerate(truth)]
        return mx.array(proposals, dtype=anchor.dtype) if proposals else None
