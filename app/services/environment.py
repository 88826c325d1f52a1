"""What this machine is, for reports: system, processor, memory and the versions that matter."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import psutil

from app.core.words import tr

PACKAGES = ("mlx", "mlx-lm", "PySide6-Essentials")


def describe() -> dict[str, str]:
    """Names and values as shown in a report; nothing that identifies the user."""
    found = {
        tr("system"): f"{platform.system()} {platform.release()}",
        tr("processor"): tr("{kind}, {count} cores", kind=platform.machine(), count=os.cpu_count()),
        tr("memory"): f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = tr("not installed")
    return found
