"""How many tokens one prefill pass takes: about 100 ms of this machine's work, so that Stop and progress are never further away.

The size is measured once and then kept: keys and values of a token may differ in their last bits with the width of the pass that
made them, so modes, repeated runs and kept prefixes must all cut a prompt at the same places.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mlx.core as mx

from engine.measured import measured_once
from engine.targets.protocol import Target

SMALLEST, LARGEST = 64, 2048  # tokens; narrower passes cost much more a token, and a busy machine must not fix one
LONGEST_S = 0.16  # the next power of two would take longer; what is chosen then takes 0.08 s or more
REPEATS = 3
FORMAT = 1


def measure_chunk(target: Target, clock: Callable[[], float] = time.perf_counter) -> int:
    """The largest power of two, from ``SMALLEST`` to ``LARGEST``, of which a pass takes at most ``LONGEST_S``."""
    width = SMALLEST
    while width < LARGEST and min(_pass_seconds(target, 2 * width, clock) for _ in range(REPEATS)) <= LONGEST_S:
        width *= 2
    return width


def kept_chunk(folder: Path, identity: Sequence[str], measure: Callable[[], int]) -> int:
    """The size kept in ``folder`` for ``identity`` (machine, versions, pair), measured and kept when there is none."""
    return measured_once(folder, "chunk", [str(FORMAT), *identity], _parse, lambda: {"tokens": measure()})


def _parse(record: dict) -> int:
    tokens = record["tokens"]
    if type(tokens) is not int or not SMALLEST <= tokens <= LARGEST or tokens & (tokens - 1):
        raise ValueError(f"{tokens!r} is no chunk size")
    return tokens


def _pass_seconds(target: Target, width: int, clock: Callable[[], float]) -> float:
    cache = target.make_cache()
    # As various as a text is: one token over and over would wake the same few experts of a mixture.
    ids = mx.random.randint(0, target.shape.vocab_size, (width,), key=mx.random.key(width))
    mx.eval(ids)
    start = clock()
    target.forward(ids, cache)
    mx.eval(target.cache_arrays(cache))
    return clock() - start
