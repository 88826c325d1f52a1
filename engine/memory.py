"""How MLX holds memory: what it keeps of freed buffers, what stays resident during an answer, and giving all of it back."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import mlx.core as mx
import psutil
from mlx_lm.utils import maybe_set_recommended_wired_limit

CPU_CACHE_BYTES = 64 * 2**20  # on the CPU a little is enough and memory stays near the weights
CACHE_SHARE, MOST_CACHE = 16, 2 * 2**30  # on a GPU one part in so many of the machine's memory, at most
TRAINING_SHARE = 4  # every step frees the same large arrays again, and making them anew would cost as much as some steps


def limit_cache(training: bool = False) -> None:
    """Bounds the freed buffers that MLX keeps for its next arrays: left alone it would keep more than a Mac's whole memory of them,
    because a growing cache frees buffers that are too small for whatever comes next."""
    total = psutil.virtual_memory().total
    on_gpu = total // TRAINING_SHARE if training else min(MOST_CACHE, total // CACHE_SHARE)
    mx.set_cache_limit(CPU_CACHE_BYTES if mx.default_device() == mx.cpu else on_gpu)


@contextmanager
def kept_resident() -> Iterator[None]:
    """Meanwhile macOS does not page the model out between two passes; elsewhere nothing happens."""
    before = maybe_set_recommended_wired_limit() if mx.metal.is_available() else None
    try:
        yield
    finally:
        if before is not None:
            mx.synchronize()  # the limit must not change under a pass
            mx.set_wired_limit(before)


def give_back() -> None:
    """Empties MLX's cache of freed buffers, and on Linux that of the C library, which keeps what it once had otherwise."""
    mx.eval(mx.random.state)  # every layer made added a split of the seed to a graph that nothing else would run and free
    gc.collect()
    mx.clear_cache()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others give back by themselves
        if trim is not None:
            trim(0)
