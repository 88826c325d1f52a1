"""Keys and values of one layer whose rows stand at any ascending positions: what a prompt read in part leaves behind.

Runs of tokens that follow each other are passed one after the other; between two runs the caller skips to where the next begins.
Rows are appended compactly, and what mlx-lm's models ask for tells of true positions: ``offset``, which rotates, and the mask.
G key/value heads, L new rows, d head size.
"""

from __future__ import annotations

from bisect import bisect_left

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.errors import RequestError
from engine.targets.protocol import Cache
from engine.targets.window_cache import STEP, WindowCache, grown


class SparseCache:
    """``offset`` is the position of the next token. ``window`` counts the token itself; None: a token sees all rows before it."""

    def __init__(self, window: int | None):
        self.window, self.offset = window, 0
        self.keys: mx.array | None = None
        self.values: mx.array | None = None
        self._positions: list[int] = []  # of the buffer's rows
        self._seen = 0  # the first row that the last update may see
        self._lost = -1  # position of the newest row that is gone

    def skip_to(self, position: int) -> None:
        """The next token stands at ``position``; those between are not there."""
        if position < self.offset:
            raise ValueError(f"Position {position} lies before the next one, {self.offset}.")
        self.offset = position

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Appends rows [1, G, L, d]; returns them behind the rows before them that the first of them sees."""
        length = keys.shape[2]
        self._reserve(keys, values)
        assert self.keys is not None and self.values is not None
        self._seen, start = self._oldest(), len(self._positions)
        self.keys[..., start : start + length, :] = keys
        self.values[..., start : start + length, :] = values
        self._positions += range(self.offset, self.offset + length)
        self.offset += length
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """What the last ``update_and_fetch`` returned: layers that share this layer's rows read it again."""
        assert self.keys is not None and self.values is not None
        rows = slice(self._seen, len(self._positions))
        return self.keys[..., rows, :], self.values[..., rows, :]

    def make_mask(self, N: int, window_size: int | None = None, return_array: bool = False) -> mx.array | str | None:
        """The mask of ``N`` tokens about to be appended, over the rows ``update_and_fetch`` will return."""
        windows = [window for window in (window_size, self.window) if window is not None]
        window, oldest = min(windows, default=None), self._oldest()
        first = self._positions[oldest] if oldest < len(self._positions) else self.offset
        if window is None or first > self.offset + N - 1 - window:  # every token sees every row before it
            if N == 1:
                return None
            if not return_array:
                return "causal"
        rows = mx.array([*self._positions[oldest:], *range(self.offset, self.offset + N)])
        distance = mx.arange(self.offset, self.offset + N)[:, None] - rows
        mask = distance >= 0
        return mask if window is None else mask & (distance < window)

    def trim(self, count: int) -> int:
        """Takes the last ``count`` rows out. Raises ``ValueError`` for rows of two runs, or where rows that come back are gone."""
        left = self.offset - count
        own = count <= len(self._positions) and (not count or self._positions[-count] == left)
        if not own or (self.window is not None and left - self.window < self._lost):
            raise ValueError(f"{count} rows cannot be taken out of {len(self._positions)} at {self.offset}.")
        del self._positions[len(self._positions) - count :]
        self.offset = left
        return count

    @property
    def state(self) -> tuple[mx.array | None, mx.array | None, int]:
        """Buffers of keys and values, and the position of the next token."""
        return self.keys, self.values, self.offset

    def _oldest(self) -> int:
        """The first of the buffer's rows that a next token can see."""
        return 0 if self.window is None else bisect_left(self._positions, self.offset - self.window + 1)

    def _reserve(self, keys: mx.array, values: mx.array) -> None:
        """Room for ``keys`` and ``values`` behind the rows still seen; what the window has passed is left behind."""
        length, held = keys.shape[2], len(self._positions)
        if self.keys is not None and held + length <= self.keys.shape[2]:
            return
        oldest = self._oldest()
        room = -(-length // STEP) * STEP
        self.keys = grown(self.keys, slice(oldest, held), keys, room)
        self.values = grown(self.values, slice(oldest, held), values, room)
        if oldest:
            self._lost = self._positions[oldest - 1]
            del self._positions[:oldest]


def sparse_like(cache: Cache) -> Cache:
    """An empty ``SparseCache`` for each entry of ``cache``. Raises ``RequestError`` where one keeps more than a row a token."""
    foreign = sorted({type(entry).__name__ for entry in cache if type(entry) not in (KVCache, WindowCache)})
    if foreign:
        raise RequestError(
            f"This model cannot read a prompt in part, its cache has no row for each token ({', '.join(foreign)}): "
            "leave sparse prefill off."
        )
    return [SparseCache(entry.window if type(entry) is WindowCache else None) for entry in cache]
