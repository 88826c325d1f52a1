"""The draft's memory of committed tokens: keys and values of context rows only, one pair a layer. Block rows never enter."""

from __future__ import annotations

import mlx.core as mx

STEP = 256


class ContextCache:
    """Grows in steps so that appending a few rows a cycle does not copy the whole context."""

    def __init__(self, num_layers: int):
        self._keys: list[mx.array | None] = [None] * num_layers
        self._values: list[mx.array | None] = [None] * num_layers
        self._rows = [0] * num_layers

    def rows(self, layer: int) -> int:
        """Context rows held for ``layer``."""
        return self._rows[layer]

    def arrays(self) -> list[mx.array]:
        """All buffers, to evaluate them."""
        return [array for array in (*self._keys, *self._values) if array is not None]

    def extend(self, layer: int, keys: mx.array, values: mx.array, fresh: int) -> tuple[mx.array, mx.array]:
        """Stores the first ``fresh`` rows of ``keys`` and ``values`` [1, G, L, d] as context.

        Returns keys and values [1, G, C+L, d] of the old context followed by all the rows given.
        """
        old = self._rows[layer]
        end = old + keys.shape[2]
        self._reserve(layer, keys, values, end)
        stored_keys, stored_values = self._keys[layer], self._values[layer]
        assert stored_keys is not None and stored_values is not None
        # Rows past ``fresh`` are block rows: they lie behind the context only until the next call overwrites them.
        stored_keys[..., old:end, :] = keys
        stored_values[..., old:end, :] = values
        self._rows[layer] = old + fresh
        return stored_keys[..., :end, :], stored_values[..., :end, :]

    def _reserve(self, layer: int, keys: mx.array, values: mx.array, end: int) -> None:
        held_keys, held_values = self._keys[layer], self._values[layer]
        room = 0 if held_keys is None else held_keys.shape[2]
        if end <= room:
            return
        more = -(-(end - room) // STEP) * STEP
        new_keys = mx.zeros((*keys.shape[:2], more, keys.shape[3]), dtype=keys.dtype)
        new_values = mx.zeros((*values.shape[:2], more, values.shape[3]), dtype=values.dtype)
        self._keys[layer] = new_keys if held_keys is None else mx.concatenate([held_keys, new_keys], axis=2)
        self._values[layer] = new_values if held_values is None else mx.concatenate([held_values, new_values], axis=2)
