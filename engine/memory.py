"""Gives the memory of what was unloaded back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys

import mlx.core as mx


def give_back() -> None:
    """Empties MLX's cache of freed buffers, and on Linux that of the C library, which keeps what it once had otherwise."""
    mx.eval(mx.random.state)  # every layer made added a split of the seed to a graph that nothing else would run and free
    gc.collect()
    mx.clear_cache()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others give back by themselves
        if trim is not None:
            trim(0)
