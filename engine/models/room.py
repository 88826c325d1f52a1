"""Checks that a disk has room for a download, with what other running downloads will still take counted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from engine.models.download_types import DownloadPlan, DownloadProblem, DownloadState

RESERVE_BYTES = 2**30  # a full disk stops every program


def free_bytes(folder: Path) -> int:
    """What is free on the disk that holds ``folder``, or will once it is made."""
    return shutil.disk_usage(_existing(folder)).free


def check_room(plan: DownloadPlan, done: int, others: Iterable[DownloadState], cache: Path) -> None:
    """Raises ``DownloadProblem`` where ``plan``, of which ``done`` bytes are here, does not fit beside the ``others`` that run."""
    needed = plan.total_bytes - done
    taken = sum(state.total_bytes - state.done_bytes for state in others if state.running and state.id != plan.id)
    free = free_bytes(cache)
    missing = needed + taken + RESERVE_BYTES - free
    if needed > 0 and missing > 0:
        beside = f", of which other downloads will take {gigabytes(taken)}" if taken else ""
        raise DownloadProblem(
            "disk",
            f"{plan.name} needs {gigabytes(needed)} and {gigabytes(free)} are free{beside}",
            f"free at least {gigabytes(missing)}, or let HF_HOME name a folder on another disk.",
        )


def gigabytes(size: int) -> str:
    """A size in words, in units of a thousand as macOS shows them."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e6:,.1f} MB"


def _existing(folder: Path) -> Path:
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder
