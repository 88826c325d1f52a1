"""The machine and versions a measurement belongs to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.info import PairInfo
from engine.sysctl import system_text


def environment(pair: PairInfo) -> dict[str, Any]:
    """What a reader needs to repeat or to distrust the numbers."""
    import psutil  # not above: the doctor takes ``processor`` from here whatever is missing

    versions = {name: importlib.metadata.version(name) for name in ("mlx", "mlx-lm")}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
        "pair": pair.id,
        "name": pair.name,
        "family": pair.family,
        "device": pair.device,
        "dtype": pair.dtype,
        "draft": pair.draft_name,
        "block_length": pair.block_length,
        "weights_bytes": pair.weights_bytes,
        "notices": list(pair.notices),
        "kv_bits": pair.kv_bits,
        "draft_bits": pair.draft_bits,
        "exact_widths": None if pair.exact_widths is None else list(pair.exact_widths),
    }


def processor() -> str:
    """The processor's name as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return system_text("machdep.cpu.brand_string") or platform.processor() or platform.machine()  # Python knows a Mac's as "arm"
