"""The draft's memory of committed tokens: keys and values of context rows only, one pair a layer. Block rows never enter.

A layer with a sliding window keeps no more rows than the window reaches; where its rows stand is written down, not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

STEP = 256


class _Rows:
    """One layer's rows: ``low:end`` of the buffers are the rows at the absolute positions ``next - (end - low)`` and on."""

    __slots__ = ("end", "keys", "limit", "low", "next", "values")

    def __init__(self, limit: int | None):
        self.limit = limit
        self.keys: mx.array | None = None
        self.values: mx.array | None = None
        self.low = self.end = 0
        self.next: int | None = None


class ContextCache:
    """Grows in steps so that appending a few rows a cycle does not copy the whole context.

    ``limits`` holds one entry a layer: the most rows before a block that the layer can see, None for all.
    """

    def __init__(self, limits: Sequence[int | None]):
        self._layers = [_Rows(limit) for limit in limits]

    def rows(self, layer: int, fresh: int = 0) -> int:
        """Context rows held for ``layer``, once ``fresh`` more are there."""
        held = self._layers[layer]
        rows = held.end - held.low + fresh
        return rows if held.limit is None else min(rows, held.limit)

    @property
    def reach(self) -> int | None:
        """The most rows before a block that any layer can see, None for all."""
        limits = [held.limit for held in self._layers]
        return None if None in limits else max((limit for limit in limits if limit is not None), default=0)

    def arrays(self) -> list[mx.array]:
        """All buffers, to evaluate them: the layers' keys, then their values."""
        found = [held.keys for held in self._layers] + [held.values for held in self._layers]
        return [array for array in found if array is not None]

    def unseen(self, layer: int, fresh: int) -> int:
        """How many of ``fresh`` new rows need not be given, because later ones already fill the window."""
        limit = self._layers[layer].limit
        return 0 if limit is None else max(0, fresh - limit)

    def skip_to(self, position: int) -> None:
        """The next rows begin at ``position``; of those between nothing is known, and windows have moved past as many."""
        for held in self._layers:
            if held.next is None:
                continue
            if held.limit is not None:
                held.low = max(held.low, held.end - max(0, held.limit - (position - held.next)))
            held.next = position

    def extend(self, layer: int, keys: mx.array, values: mx.array, position: int, fresh: int) -> tuple[mx.array, mx.array]:
        """Stores the first ``fresh`` rows of ``keys`` and ``values`` [1, G, L, d] as context; the first is at ``position``.

        Returns keys and values [1, G, C+L-fresh, d] of the ``rows(layer)`` rows of context, then the other rows given.
        """
        held = self._layers[layer]
        if held.next not in (None, position) and self.rows(layer) and not (held.limit is not None and fresh >= held.limit):
            raise ValueError(f"Context rows at position {position} do not follow those before {held.next}.")
        self._reserve(held, keys, values)
        assert held.keys is not None and held.values is not None
        old, end = held.end, held.end + keys.shape[2]
        # Rows past ``fresh`` are block rows: they lie behind the context only until the next call overwrites them.
        held.keys[..., old:end, :] = keys
        held.values[..., old:end, :] = values
        held.end, held.next = old + fresh, position + fresh
        if held.limit is not None:
            held.low = max(held.low, held.end - held.limit)
        return held.keys[..., held.low : end, :], held.values[..., held.low : end, :]

    @staticmethod
    def _reserve(held: _Rows, keys: mx.array, values: mx.array) -> None:
        """Makes room for all of ``keys``, leaving behind what the window has passed."""
        room = 0 if held.keys is None else held.keys.shape[2]
        if held.end + keys.shape[2] <= room:
            return
        kept = held.end - held.low
        more = -(-keys.shape[2] // STEP) * STEP
        for name, like in (("keys", keys), ("values", values)):
            buffer, space = getattr(held, name), mx.zeros((*like.shape[:2], more, like.shape[3]), dtype=like.dtype)
            if kept:
                space = mx.concatenate([buffer[..., held.low : held.end, :], space], axis=2)
            setattr(held, name, space)
        held.low, held.end = 0, kept
