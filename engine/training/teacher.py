"""The frozen target as a teacher: taps and distributions of whole texts.

N texts of S tokens, A blocks of B slots, H hidden size, n taps, K head rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.targets.attention import AttentionTarget


class Teacher:
    """Runs the target without caches and without its vocabulary projection, which is only applied to the rows asked for."""

    def __init__(self, target: AttentionTarget, taps: tuple[int, ...]):
        self._target, self._taps = target, taps
        self._layers = tuple(sorted({*taps, target.shape.num_layers - 1}))

    def run(self, ids: mx.array) -> tuple[mx.array, mx.array]:
        """``ids`` [N, S] to taps [N, S, n*H] and the last layer's stream [N, S, H]."""
        streams = dict(zip(self._layers, self._target.streams(ids, self._layers), strict=True))
        taps = mx.concatenate([streams[tap] for tap in self._taps], axis=-1)
        return taps, streams[self._layers[-1]]

    def probabilities(self, stream: mx.array, places: mx.array, drafter: DFlashDrafter) -> mx.array:
        """The target's distribution [N, A, B, K] over the draft's vocabulary at positions ``places`` [N, A, B] of ``stream``."""
        texts = places.shape[0]
        flat = mx.broadcast_to(places.reshape(texts, -1, 1), (texts, places.size // texts, stream.shape[-1]))
        rows = self._target.final_norm(mx.take_along_axis(stream, flat, axis=1))
        logits = drafter.project(rows).astype(mx.float32)
        return mx.softmax(logits, axis=-1).reshape(*places.shape, -1)


class TapStore:
    """What the teacher says about the texts of a corpus [N, S], kept between steps where all of it fits into ``budget_bytes``:
    a text met again then costs no pass of the target. ``check`` is called after each pass."""

    def __init__(self, teacher: Teacher, ids: np.ndarray, budget_bytes: int, check: Callable[[], None] = lambda: None):
        self._teacher, self._ids, self._budget, self._check = teacher, ids, budget_bytes, check
        self._kept: dict[int, tuple[mx.array, mx.array]] = {}
        self._keep: bool | None = None  # not known before the first text's size is

    def get(self, numbers: Sequence[int], width: int) -> tuple[mx.array, mx.array]:
        """Taps [n, width, n*H] and last stream [n, width, H] of the first ``width`` tokens of texts ``numbers`` [n]."""
        if self._keep is None:
            taps, stream = self._teacher.run(mx.array(self._ids[:1, :1]))
            self._keep = (taps.nbytes + stream.nbytes) * self._ids.size <= self._budget
        if not self._keep:
            return self._teacher.run(mx.array(self._ids[list(numbers), :width]))
        for number in set(numbers) - self._kept.keys():  # alone: its last bits must not depend on what else is asked for
            taps, stream = self._teacher.run(mx.array(self._ids[number : number + 1]))
            self._kept[number] = (taps[0], stream[0])
            mx.eval(self._kept[number])
            self._check()
        found = [self._kept[number] for number in numbers]
        return mx.stack([taps[:width] for taps, _ in found]), mx.stack([stream[:width] for _, stream in found])
