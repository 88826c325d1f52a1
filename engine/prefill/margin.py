"""How near to a tie the target's choice after some tokens is, for reports of texts that differ."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import mlx.core as mx

from engine.errors import RequestError
from engine.prefill.chunked import Prefilled, prefill
from engine.targets.protocol import Target


def top2_margin(target: Target, token_ids: Sequence[int], chunk: int) -> float:
    """Logits between the first and the second choice after ``token_ids``. Raises ``RequestError`` for unknown ids."""
    if not all(0 <= token < target.shape.vocab_size for token in token_ids):  # MLX would read outside the table
        raise RequestError(f"A token id is outside the model's vocabulary of {target.shape.vocab_size:,}.")
    for outcome in prefill(target, target.make_cache(), token_ids, None, (), chunk, threading.Event()):
        if isinstance(outcome, Prefilled):
            best = mx.sort(outcome.logits[0].astype(mx.float32))[-2:]
            return float(mx.diff(best)[0])
    raise RequestError("There is no token to look at: give at least one.")
