"""What happens to logits before a token is drawn: bias and penalties that know the history, and the cuts that drop tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mlx.core as mx


class Penalties:
    """Logit bias, then repetition, frequency and presence penalty. The history is kept on the device, so nothing waits for it.

    Repetition counts the tokens of prompt and answer, frequency and presence those of the answer only.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        bias: Iterable[tuple[int, float]] = (),
        repetition: float = 1.0,
        presence: float = 0.0,
        frequency: float = 0.0,
    ):
        self._prompt = mx.array(list(prompt), dtype=mx.int32)
        self._bias = list(bias)
        self._repetition, self._presence, self._frequency = repetition, presence, frequency
        self._bias_row: mx.array | None = None  # [V]
        self._history: tuple[mx.array, mx.array] | None = None  # [V] how often each token is in the answer, [V] is in the prompt

    @property
    def changes_nothing(self) -> bool:
        return not self._bias and not self._has_memory

    def apply(self, logits: mx.array, block: mx.array | None) -> mx.array:
        """Float32 [L, V]. Row j follows the history and ``block[: j + 1]``; without a ``block`` [L] the history alone."""
        logits = logits.astype(mx.float32)
        vocabulary = logits.shape[-1]
        if self._bias:
            if self._bias_row is None:
                ids, values = zip(*self._bias, strict=True)
                self._bias_row = mx.zeros((vocabulary,)).at[mx.array(ids)].add(mx.array(values, dtype=mx.float32))
            logits = logits + self._bias_row
        if not self._has_memory:
            return logits
        counts, in_prompt = self._counted(vocabulary)
        counts = counts[None]
        if block is not None:
            counts = counts + mx.cumsum((block[:, None] == mx.arange(vocabulary)).astype(mx.float32), axis=0)
        if self._repetition != 1:
            seen = (counts > 0) | in_prompt
            logits = mx.where(seen, mx.where(logits > 0, logits / self._repetition, logits * self._repetition), logits)
        if self._frequency:
            logits = logits - self._frequency * counts
        return logits - self._presence * (counts > 0) if self._presence else logits

    def advance(self, ids: mx.array, vocabulary: int) -> None:
        """``ids`` [n] joined the answer for good."""
        if self._has_memory:
            counts, in_prompt = self._counted(vocabulary)
            self._history = counts.at[ids].add(1), in_prompt

    @property
    def _has_memory(self) -> bool:
        return self._repetition != 1 or self._presence != 0 or self._frequency != 0

    def _counted(self, vocabulary: int) -> tuple[mx.array, mx.array]:
        if self._history is None:
            in_prompt = mx.zeros((vocabulary,)).at[self._prompt].add(1) > 0
            self._history = mx.zeros((vocabulary,)), in_prompt
        return self._history


@dataclass(frozen=True, slots=True)
class Cuts:
    """Which tokens may be drawn: ``top_k`` (0: off), then ``top_p`` (1: off), then ``min_p`` (0: off)."""

    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def cut_nothing(self) -> bool:
        return self.top_k == 0 and self.top_p == 1 and self.min_p == 0

    def apply(self, logits: mx.array) -> tuple[mx.array | None, mx.array]:
        """The candidates of ``logits`` [L, V] (divided by the temperature): token ids [L, K] or None for all of them in order,
        and their logits [L, K] with -inf for those that are cut. Of tokens tied at an edge, any may be the ones that stay.
        """
        ids = None
        if 0 < self.top_k < logits.shape[-1]:
            ids = mx.argpartition(-logits, self.top_k - 1, axis=-1)[:, : self.top_k]
            logits = mx.take_along_axis(logits, ids, axis=-1)
        if self.top_p < 1:
            order = mx.argsort(-logits, axis=-1)
            ids = order if ids is None else mx.take_along_axis(ids, order, axis=-1)
            logits = mx.take_along_axis(logits, order, axis=-1)
            before = mx.cumsum(mx.softmax(logits, axis=-1), axis=-1, inclusive=False)  # the share of the tokens more likely
            logits = mx.where(before < self.top_p, logits, -math.inf)
        if self.min_p > 0:
            lowest = mx.max(logits, axis=-1, keepdims=True) + math.log(self.min_p)
            logits = mx.where(logits >= lowest, logits, -math.inf)
        return ids, logits
