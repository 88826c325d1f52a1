"""What this machine is, for reports: system, processor, memory and the versions that matter."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import psutil

PACKAGES = ("mlx", "mlx-lm", "PySide6-Essentials")


def describe() -> dict[str, str]:
    """Names and values as shown in a report; nothing that identifies the user."""
    found = {
        "system": f"{platform.system()} {platform.release()}",
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
