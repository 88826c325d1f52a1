"""What a target's own early attention looks at from the last user turn: a score of the prompt for sparse prefill.

The layers below run on the whole prompt, in chunks, which costs about a quarter of a whole prefill. P prompt tokens, Q query rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from engine.errors import RequestError
from engine.targets.protocol import Target

DEPTH = 4 / 15  # of the layers: the first place where retrieving heads were found in the starter target (layer 8 of 30)
QUERIES = 64  # last rows whose attention counts
NEEDED = ("q_proj", "k_proj", "rope", "scale", "n_heads", "n_kv_heads")


def attention_weights(target: Target, ids: Sequence[int], asking: np.ndarray, chunk: int) -> np.ndarray:
    """[P], the largest weight that any head gives each token of ``ids`` from the rows ``asking`` [P] among the last ones.

    Raises ``RequestError`` for a family whose attention cannot be read from outside.
    """
    layer = max(1, round(target.shape.num_layers * DEPTH))
    below = _stream_below(target, ids, layer, chunk)
    block = target.layer(layer)
    attention: Any = block.get("self_attn")
    if attention is None or not all(hasattr(attention, name) for name in NEEDED) or "input_layernorm" not in block:
        raise RequestError(f"The attention of the family {target.family!r} cannot be read: choose the scorer lexical or stride.")
    rows = block["input_layernorm"](below)[None]
    count = min(QUERIES, len(ids))
    queries = _heads(attention, "q", rows[:, -count:], attention.n_heads, len(ids) - count)
    keys = mx.repeat(_heads(attention, "k", rows, attention.n_kv_heads, 0), attention.n_heads // attention.n_kv_heads, axis=1)
    seen = mx.arange(len(ids))[None] <= mx.arange(len(ids) - count, len(ids))[:, None]
    weights = mx.softmax(mx.where(seen, queries @ keys.swapaxes(-1, -2) * attention.scale, -mx.inf), axis=-1)
    counted = asking[-count:] if asking[-count:].any() else np.ones(count, dtype=bool)
    return np.array(weights[0].astype(mx.float32))[:, counted].max(axis=(0, 1))


def _stream_below(target: Target, ids: Sequence[int], layer: int, chunk: int) -> mx.array:
    """What layer ``layer`` reads [P, H]. The layers from there on are in the graph of each pass and never computed."""
    cache, tokens, parts = target.make_cache(), mx.array(list(ids), dtype=mx.int32), []
    for start in range(0, len(ids), chunk):
        taps = target.forward(tokens[start : start + chunk], cache, (layer - 1,)).taps
        assert taps is not None
        mx.eval(taps, target.cache_arrays(cache[:layer]))
        parts.append(taps)
    return mx.concatenate(parts)


def _heads(attention: Any, kind: str, rows: mx.array, heads: int, position: int) -> mx.array:
    """Rotated queries or keys [1, heads, L, d] of ``rows`` [1, L, H], the first at ``position``."""
    projected = getattr(attention, f"{kind}_proj")(rows).reshape(1, rows.shape[1], heads, -1)
    norm = getattr(attention, f"{kind}_norm", None)
    projected = projected if norm is None else norm(projected)
    return attention.rope(projected.transpose(0, 2, 1, 3), offset=position)
