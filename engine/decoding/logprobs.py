"""Log probabilities of chosen tokens and their likeliest alternatives: computed on the device, read with the tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import mlx.core as mx

from engine.events import TokenLogprob


def pack_logprobs(logits: mx.array, chosen: mx.array, top: int) -> mx.array:
    """One float32 row [1 + 2 * top] a token of ``chosen`` [L] under ``logits`` [L, V]: its log probability, then those of the
    ``top`` most likely tokens, then their ids (exact up to 2**24).
    """
    logits = logits.astype(mx.float32)
    logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    top = min(top, logits.shape[-1])
    columns = [mx.take_along_axis(logprobs, mx.maximum(chosen, 0)[:, None], axis=-1)]
    if top:
        ids = mx.argpartition(-logprobs, top - 1, axis=-1)[:, :top]
        best = mx.take_along_axis(logprobs, ids, axis=-1)
        order = mx.argsort(-best, axis=-1)
        columns += [mx.take_along_axis(best, order, axis=-1), mx.take_along_axis(ids, order, axis=-1).astype(mx.float32)]
    return mx.concatenate(columns, axis=-1)


def read_logprobs(packed: mx.array | None, tokens: Sequence[int]) -> tuple[TokenLogprob, ...]:
    """The records of ``tokens``, the first of those that ``packed`` [L, 1 + 2 * top] is about; none without it.

    Tokens that could not be chosen at all are no alternatives.
    """
    if packed is None:
        return ()
    rows = cast(list[list[float]], packed[: len(tokens)].tolist())
    top = (packed.shape[-1] - 1) // 2
    likeliest = [zip(row[1 + top :], row[1 : 1 + top], strict=True) for row in rows]
    return tuple(
        TokenLogprob(token, row[0], tuple((int(i), value) for i, value in best if value > -math.inf))
        for token, row, best in zip(tokens, rows, likeliest, strict=True)
    )
