"""Keys and values of one sliding-window layer, in temporal order and with room behind the window, so that undoing is exact.

mlx-lm's own rotating cache overwrites its oldest row for each new token and so cannot take a token back once the ring has
wrapped. Here rows are appended to a buffer longer than the window; when it is full, the rows that a next token can still see
move to the front of a new one. G key/value heads, L new rows, d head size, W window.
"""

from __future__ import annotations

import mlx.core as mx
from mlx_lm.models.base import create_causal_mask

STEP = 256  # rows; once the text is longer than the window, the buffer is copied once in about so many tokens


class WindowCache:
    """What mlx-lm's models ask of a cache: ``offset``, ``update_and_fetch``, ``keys_and_values`` and ``make_mask``.

    ``window`` counts the token itself: a token sees at most ``window - 1`` rows before it.
    """

    def __init__(self, window: int):
        self.window, self.offset = window, 0
        self.keys: mx.array | None = None
        self.values: mx.array | None = None
        self._first = 0  # position of the buffer's first row
        self._seen = 0  # position of the first row that the last update may see

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Appends rows [1, G, L, d]; returns them behind the rows before them that the first of them sees."""
        length = keys.shape[2]
        self._seen = self._oldest()
        self._reserve(keys, values)
        assert self.keys is not None and self.values is not None
        start = self.offset - self._first
        self.keys[..., start : start + length, :] = keys
        self.values[..., start : start + length, :] = values
        self.offset += length
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """What the last ``update_and_fetch`` returned: layers that share this layer's rows read it again."""
        assert self.keys is not None and self.values is not None
        rows = slice(self._seen - self._first, self.offset - self._first)
        return self.keys[..., rows, :], self.values[..., rows, :]

    def make_mask(self, N: int, window_size: int | None = None, return_array: bool = False) -> mx.array | str | None:
        """The mask of ``N`` tokens about to be appended, over the rows ``update_and_fetch`` will return.

        A model that asks for a window wider than its cache gets the cache's: otherwise a block would see rows that single
        steps have already lost, and the two would differ.
        """
        window = min(window_size or self.window, self.window)
        before = self.offset - self._oldest()
        if N == 1:
            return None if before < window else mx.arange(before + 1) > before - window
        if before + N > window or return_array:
            return create_causal_mask(N, before, window_size=window)
        return "causal"

    def trim(self, count: int) -> int:
        """Takes the last ``count`` rows out. Raises ``ValueError`` where rows that would come back into the window are gone."""
        left = self.offset - count
        if left < 0 or max(0, left - self.window + 1) < self._first:
            raise ValueError(f"{count} rows cannot be taken out of a window of {self.window} at {self.offset}.")
        self.offset = left
        return count

    @property
    def first(self) -> int:
        """Position of the first row in ``keys`` and ``values``."""
        return self._first

    @property
    def state(self) -> tuple[mx.array | None, mx.array | None, int]:
        """Keys and values a next token can see, and the offset: all that later tokens depend on."""
        if self.keys is None or self.values is None:
            return None, None, self.offset
        rows = slice(self._oldest() - self._first, self.offset - self._first)
        return self.keys[..., rows, :], self.values[..., rows, :], self.offset

    @state.setter
    def state(self, state: tuple[mx.array | None, mx.array | None, int]) -> None:
        self.keys, self.values, self.offset = state
        self._first = self._seen = self._oldest()

    def _oldest(self) -> int:
        """Position of the oldest row that a next token can see."""
        return max(0, self.offset - self.window + 1)

    def _reserve(self, keys: mx.array, values: mx.array) -> None:
        """Room for ``keys`` and ``values`` behind the rows still seen."""
        length = keys.shape[2]
        if self.keys is not None and self.offset - self._first + length <= self.keys.shape[2]:
            return
        oldest = self._oldest()
        held = self.offset - oldest
        # Until rows are dropped the buffer grows as mlx-lm's plain cache does; from then on a copy buys a step of rows.
        room = max(length, STEP) if oldest else -(-(held + length) // STEP) * STEP - held
        rows = slice(oldest - self._first, self.offset - self._first)
        self.keys = grown(self.keys, rows, keys, room)
        self.values = grown(self.values, rows, values, room)
        self._first = oldest


def grown(buffer: mx.array | None, rows: slice, like: mx.array, room: int) -> mx.array:
    """The ``rows`` of ``buffer`` [1, G, R, d] with ``room`` empty ones behind, shaped ``like`` new rows."""
    empty = mx.zeros((*like.shape[:2], room, like.shape[3]), dtype=like.dtype)
    return empty if buffer is None else mx.concatenate([buffer[..., rows, :], empty], axis=2)
