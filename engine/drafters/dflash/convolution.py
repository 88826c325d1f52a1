"""DFlash 2's convolution along the block: every row is mixed with the rows just before it, by weights it chooses itself."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn


class GroupedConvolution(nn.Module):
    """Wraps one sublayer. K taps, tap 0 the row itself; ``group`` channels share a correction. Context rows never pass here."""

    def __init__(self, hidden_size: int, taps: int, group: int):
        super().__init__()
        self.taps, self.group = taps, group
        self.base_kernel = mx.zeros((2, taps, hidden_size))  # [side, tap, channel]: side 0 the input, side 1 the output
        self.kernel_projection = nn.Linear(hidden_size, 2 * taps * (hidden_size // group), bias=False)

    def around(self, sublayer: Callable[[mx.array], mx.array], rows: mx.array) -> mx.array:
        """``sublayer`` [B, H] -> [B, H] with its input and its output convolved, both as the input ``rows`` [B, H] choose."""
        corrections = self.kernel_projection(rows).reshape(rows.shape[0], 2, self.taps, -1)
        return self._convolve(sublayer(self._convolve(rows, corrections[:, 0], 0)), corrections[:, 1], 1)

    def _convolve(self, rows: mx.array, corrections: mx.array, side: int) -> mx.array:
        """``corrections`` [B, K, H/group]. Nothing stands before the block, so what would reach there is zero."""
        slots = rows.shape[0]
        grouped = rows.reshape(slots, -1, self.group)
        base = self.base_kernel[side].reshape(self.taps, -1, self.group)
        mixed = (base[0] + corrections[:, 0, :, None]) * grouped
        for tap in range(1, min(self.taps, slots)):
            earlier = mx.pad(grouped[:-tap], [(tap, 0), (0, 0), (0, 0)])
            mixed = mixed + (base[tap] + corrections[:, tap, :, None]) * earlier
        return mixed.reshape(slots, -1)
