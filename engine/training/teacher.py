"""The frozen target as a teacher: taps and distributions of whole texts.

N texts of S tokens, A blocks of B slots, H hidden size, n taps, K head rows.
"""

from __future__ import annotations

import mlx.core as mx

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
