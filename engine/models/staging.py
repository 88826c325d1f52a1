"""Writes a folder so that it is either complete or absent: staged beside its place, fsynced, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUFFIX = ".partial"
# What a full disk, a quota and a file-size limit answer.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def staged_folder(destination: Path) -> Iterator[Path]:
    """Yields an empty folder beside ``destination`` that takes its place when the block ends without an error.

    A folder already at ``destination`` is replaced. After an error (Ctrl-C included) nothing of the staged folder is
    left; after a kill a ``.NAME.*.partial`` folder may be, which ``sweep`` removes. Raises ``OSError``.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    staged = destination.parent / f".{destination.name}.{uuid.uuid4().hex[:8]}{SUFFIX}"
    staged.mkdir()
    try:
        yield staged
        for path in sorted(staged.rglob("*")):
            flush(path)
        flush(staged)
        _replace(staged, destination)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _replace(staged: Path, destination: Path) -> None:
    if destination.exists():
        # A folder cannot be renamed over a filled one; the old one carries the swept suffix in case we die in between.
        old = destination.parent / f".{destination.name}.{uuid.uuid4().hex[:8]}{SUFFIX}"
        destination.rename(old)
        staged.rename(destination)
        shutil.rmtree(old, ignore_errors=True)
    else:
        staged.rename(destination)
    flush(destination.parent)


def flush(path: Path) -> None:
    """Forces a file or a folder's list of names to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(parent: Path, name: str) -> None:
    """Removes what killed runs left while staging ``parent / name``. The caller makes sure that none is running."""
    for leftover in parent.glob("." + name + ".*" + SUFFIX):
        shutil.rmtree(leftover, ignore_errors=True)


def write_problem(error: Exception, destination: Path) -> str:
    """One line for a failed write to ``destination``: full disks are told from the rest."""
    full = any(f"(os error {number})" in str(error) for number in NO_ROOM)  # how safetensors passes errno on
    if full or (isinstance(error, OSError) and error.errno in NO_ROOM):
        return f"There is no room left for {destination}: free some disk space and try again."
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{destination} cannot be written ({reason}): check the folder and try again."
