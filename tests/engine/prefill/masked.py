"""The reference for a prompt read in part: mlx-lm's own forward over the whole prompt, with the tokens left out masked away.

Every token runs at its own position in one pass, and no token sees one that was left out, so the rows of the tokens that are kept
are exactly what reading only those should give.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache


class MaskedCache(KVCache):
    """A plain cache whose mask hides all but ``kept`` [P] rows; ``window`` counts the token itself."""

    def __init__(self, kept: np.ndarray, window: int | None):
        super().__init__()
        self._kept, self._window = kept, window

    def make_mask(self, N: int, window_size: int | None = None, return_array: bool = False) -> mx.array:
        assert self.offset == 0 and len(self._kept) == N
        distance = np.arange(N)[:, None] - np.arange(N)
        allowed = (distance >= 0) & (self._kept[None] | (distance == 0))
        for window in (window_size, self._window):
            if window is not None:
                allowed &= distance < window
        return mx.array(allowed)


def masked_logits(model: nn.Module, ids: Sequence[int], kept: np.ndarray) -> mx.array:
    """Logits [P, V] of the whole prompt ``ids``; only the rows where ``kept`` is True mean anything."""
    windows = [entry.max_size if type(entry) is RotatingKVCache else None for entry in make_prompt_cache(model)]
    return model(mx.array([list(ids)]), cache=[MaskedCache(kept, window) for window in windows])[0]
