"""Single files that are complete or absent, and the sweep of what killed writers left behind; processes may share the folder."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial"


@contextmanager
def published(path: Path) -> Iterator[int]:
    """Yields the descriptor of a new private file that is renamed to ``path`` when the block ends without an error.

    The block fsyncs what must survive a power cut. The file is locked while it is written, so that ``sweep`` can tell it
    from what a killed process left. Raises ``OSError``.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}{PARTIAL}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with suppress(OSError):  # file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> int:
    """Removes the partial files in ``folder`` that no living process writes; how many. Raises ``OSError`` for the folder itself."""
    removed = 0
    for part in folder.glob(f".*{PARTIAL}"):
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
            removed += 1
        except OSError:  # locked: another process is writing it
            continue
        finally:
            os.close(descriptor)
    return removed


def make_private_folder(folder: Path) -> None:
    """Makes ``folder`` if need be; only the user may look into it. Raises ``OSError``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
