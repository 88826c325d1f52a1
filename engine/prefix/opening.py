"""Opens the prefix cache of a loaded pair: its content key, the budgets of both tiers and the folder on disk."""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from engine.drafters.protocol import Drafter
from engine.options import LoadOptions
from engine.prefix.cache import PrefixCache
from engine.prefix.disk import DiskTier
from engine.prefix.identity import content_key
from engine.targets.protocol import Target

log = logging.getLogger(__name__)

MEMORY_SHARE = 16  # one part in so many of the machine's memory, between these bounds
LEAST_RAM, MOST_RAM = 256 * 2**20, 8 * 2**30
MOST_DISK, FREE_SHARE = 5 * 2**30, 10  # at most one part in so many of the free disk space
WRITES_PER_HOUR = 4 * 2**30


def ram_budget(options: LoadOptions) -> int:
    """Bytes of memory that prefixes may take."""
    if options.prefix_ram_bytes is not None:
        return options.prefix_ram_bytes
    return min(MOST_RAM, max(LEAST_RAM, psutil.virtual_memory().total // MEMORY_SHARE))


def disk_budget(options: LoadOptions, folder: Path) -> int:
    """Bytes of disk space that prefixes may take; what they take already counts as free."""
    if options.prefix_disk_bytes is not None:
        return options.prefix_disk_bytes
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return min(MOST_DISK, (shutil.disk_usage(place).free + _taken(folder)) // FREE_SHARE)


def _taken(folder: Path) -> int:
    """Bytes of the files in ``folder``, where other processes may write and remove some meanwhile."""
    total = 0
    for file in folder.glob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def open_prefix_cache(
    target: Target,
    drafter: Drafter | None,
    grid: int,
    folders: Sequence[Path],
    settings: Sequence[str],
    options: LoadOptions,
    folder: Path,
    cancel: threading.Event | None = None,
) -> PrefixCache | None:
    """The cache of the pair in ``folders``, on disk below ``folder``; None where the options leave no room for any.

    ``settings`` are what the arrays depend on beside the folders' files. Raises ``Cancelled``.
    """
    ram = ram_budget(options)
    try:
        disk = disk_budget(options, folder)
        root = content_key(folders, [*settings, str(grid)], folder.with_name("hashes.json"), cancel) if disk else None
    except OSError as error:
        log.warning("prefixes are kept in memory only: %s", error)
        disk, root = 0, None
    if not ram and not disk:
        return None
    tier = DiskTier(folder, disk, WRITES_PER_HOUR) if disk else None
    return PrefixCache(target, drafter, grid, root or uuid.uuid4().hex * 2, ram, tier)
