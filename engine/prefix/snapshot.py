"""What a target's caches hold of one stretch of tokens, taken out as arrays and put back into empty caches.

Rows are taken as [n, G, d]: one row a token, for keys and values of plain, quantised and sliding-window attention alike. State is
what only the whole prefix determines: the few arrays of a recurrent layer. Names are ``entry.part``, entries counted through lists
of caches in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, KVCache, QuantizedKVCache

from engine.targets.protocol import Cache
from engine.targets.recurrent import flat_entries
from engine.targets.window_cache import WindowCache

STEP = 256  # rows; mlx-lm's caches grow by so many
KINDS = (KVCache, QuantizedKVCache, WindowCache, ArraysCache)


def foreign_kind(cache: Cache) -> str | None:
    """The name of a kind of cache that cannot be taken apart here; None where all can."""
    return next((type(entry).__name__ for entry in flat_entries(cache) if type(entry) not in KINDS), None)


def has_state(cache: Cache) -> bool:
    """Whether rows alone do not make up this cache."""
    return any(type(entry) is ArraysCache for entry in flat_entries(cache))


def take_rows(cache: Cache, start: int, stop: int) -> dict[str, mx.array]:
    """Copies of the rows of tokens ``start`` to ``stop`` - 1, lazy. They must be of the last pass, or the cache without windows."""
    rows = {}
    for index, entry in enumerate(flat_entries(cache)):
        if type(entry) is ArraysCache or entry.keys is None:
            continue
        before = entry.first if type(entry) is WindowCache else 0
        for name, array in _parts(entry).items():
            rows[f"{index}.{name}"] = mx.contiguous(array[0, :, start - before : stop - before].transpose(1, 0, 2))
    return rows


def take_state(cache: Cache) -> dict[str, mx.array]:
    """Copies of the recurrent layers' arrays as they stand, lazy; a view would hold what it was cut from in memory."""
    return {
        f"{index}.{number}": mx.contiguous(array)
        for index, entry in enumerate(flat_entries(cache))
        if type(entry) is ArraysCache
        for number, array in enumerate(entry.cache)
        if array is not None
    }


def put(cache: Cache, rows: Sequence[Mapping[str, mx.array]], state: Mapping[str, mx.array], tokens: int) -> None:
    """Fills the empty ``cache`` with ``tokens`` tokens: the ``rows`` of stretches that follow each other from 0, and ``state``."""
    for index, entry in enumerate(flat_entries(cache)):
        if type(entry) is ArraysCache:
            entry.cache = [state.get(f"{index}.{number}") for number in range(len(entry.cache))]
        elif type(entry) is WindowCache:
            oldest = max(0, tokens - entry.window + 1)
            keys, values = (_joined(rows, f"{index}.{name}", oldest, 0) for name in ("keys", "values"))
            entry.state = (keys, values, tokens)
        elif type(entry) is QuantizedKVCache:
            entry.keys, entry.values = (
                tuple(_joined(rows, f"{index}.{name}.{part}", 0, _room(tokens)) for part in range(3)) for name in ("keys", "values")
            )
            entry.offset = tokens
        else:
            entry.keys, entry.values = (_joined(rows, f"{index}.{name}", 0, _room(tokens)) for name in ("keys", "values"))
            entry.offset = tokens


def _parts(entry: Any) -> dict[str, mx.array]:
    """The buffers [1, G, rows, d] of one cache by name."""
    if type(entry) is not QuantizedKVCache:
        return {"keys": entry.keys, "values": entry.values}
    return {f"{name}.{part}": array for name in ("keys", "values") for part, array in enumerate(getattr(entry, name))}


def _room(tokens: int) -> int:
    """Empty rows behind ``tokens``, so that the first pass need not copy everything to make room."""
    return STEP - tokens % STEP


def _joined(rows: Sequence[Mapping[str, mx.array]], name: str, oldest: int, room: int) -> mx.array | None:
    """[1, G, L, d] of the rows from position ``oldest`` on, with ``room`` empty ones behind; None for a layer without rows."""
    parts = [stretch[name] for stretch in rows if name in stretch]
    if not parts:
        return None
    while oldest >= parts[0].shape[0]:
        oldest -= parts.pop(0).shape[0]
    parts[0] = parts[0][oldest:]
    if room:
        parts.append(mx.zeros((room, *parts[0].shape[1:]), dtype=parts[0].dtype))
    return mx.concatenate([part.transpose(1, 0, 2)[None] for part in parts], axis=2)
