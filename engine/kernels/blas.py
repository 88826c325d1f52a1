"""Gives MLX on Linux a fast BLAS.

mlx-cpu ships a reference BLAS that takes as long for each further row as for the first, so a verify pass could never pay.
A library opened with RTLD_GLOBAL before MLX answers MLX's ``cblas_*`` calls instead.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

LIBRARIES = ("libopenblas.so.0", "libopenblas.so")


@cache
def use_fast_blas() -> bool | None:
    """Opens OpenBLAS for MLX; call before MLX is imported. None: not needed here; False: there is none."""
    if sys.platform != "linux":
        return None
    if "mlx.core" in sys.modules:  # MLX has bound the library it came with
        return False
    if "OPENBLAS_CORETYPE" not in os.environ and (core := _core_type(Path("/proc/cpuinfo"))):
        os.environ["OPENBLAS_CORETYPE"] = core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(blas_threads(len(os.sched_getaffinity(0)))))
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return True
    return False


@cache
def blas_version() -> str:
    """What the OpenBLAS in use says of itself, "" where another library is."""
    for name in LIBRARIES if sys.platform == "linux" else ():
        try:
            config = ctypes.CDLL(name).openblas_get_config
        except (OSError, AttributeError):
            continue
        config.restype = ctypes.c_char_p
        return config().decode()
    return ""


def blas_threads(cores: int) -> int:
    """All cores but one: OpenBLAS threads wait for each other by spinning, so each product stalls whenever one of them has to
    share its core with the thread that builds the next pass, the window or another program."""
    return max(1, cores - 1)


def _core_type(cpuinfo: Path) -> str | None:
    """OpenBLAS falls back to its oldest kernels on a processor newer than itself, so name a core by its features."""
    try:
        flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    except OSError:
        return None
    if {"avx512f", "avx512vl", "avx512dq"} <= set(flags):
        return "SkylakeX"
    return "Haswell" if "avx2" in flags else None
