"""Positional sparse prefill: only chosen tokens of the prompt are run, each at its own position. Approximate, and said to be."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import mlx.core as mx

from engine.drafters.protocol import DraftSession
from engine.prefill.chunked import Prefilled
from engine.prefill.selection import Run
from engine.targets.protocol import Cache, Target


def sparse_prefill(
    target: Target,
    cache: Cache,
    prompt: Sequence[int],
    runs: Sequence[Run],
    session: DraftSession | None,
    taps: tuple[int, ...],
    chunk: int,
    cancel: threading.Event,
) -> Iterator[int | Prefilled]:
    """Like ``prefill`` over the stretches ``runs`` of ``prompt``, the last of which must end with it; yields positions passed.

    ``cache`` comes from ``target.make_sparse_cache``. Runs are cut where whole prefill cuts, so that keeping everything runs the
    same passes.
    """
    ids = mx.array(list(prompt), dtype=mx.int32)
    last = len(prompt) - 1
    for start, stop in passes(runs, last, chunk):
        if cancel.is_set():
            return
        _skip_to(start, target, cache, session)
        output = target.forward(ids[start:stop], cache, taps)
        pending = target.cache_arrays(cache)
        if session is not None:
            pending += session.prefill(output.taps, start)
        mx.eval(pending)
        yield stop
    if cancel.is_set():
        return
    _skip_to(last, target, cache, session)
    output = target.forward(ids[last:], cache, taps)
    yield Prefilled(output.logits, output.taps)


def passes(runs: Sequence[Run], last: int, chunk: int) -> Iterator[Run]:
    """``runs`` before position ``last``, cut at the multiples of ``chunk``."""
    for start, stop in runs:
        at, end = start, min(stop, last)
        while at < end:
            border = min(end, (at // chunk + 1) * chunk)
            yield at, border
            at = border


def _skip_to(position: int, target: Target, cache: Cache, session: DraftSession | None) -> None:
    target.skip_to(cache, position)
    if session is not None:
        session.skip_to(position)
