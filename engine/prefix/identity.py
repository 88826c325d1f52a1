"""What kept prefixes belong to: a hash of everything that their arrays depend on, never a model's name."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from engine.models.manifest import sha256

log = logging.getLogger(__name__)
FORMAT = 1  # of the segments' names and arrays; raised when they or the passes that make them change
SETTLED_S = 2.0  # a file changed this recently may change again under the same time stamp


def content_key(folders: Sequence[Path], settings: Sequence[str], known: Path, cancel: threading.Event | None = None) -> str:
    """64 hex digits for the models in ``folders`` run with ``settings``.

    Every file of a folder counts: weights, configuration, tokenizer and template; not the hidden ones, which a Mac's Finder writes
    where it pleases. Its whole content is hashed once; the file ``known`` remembers that hash for as long as place, inode, size and
    times stay the same. Raises ``OSError``, ``Cancelled``.
    """
    hashes = _read(known)
    current: dict[str, list] = {}
    parts = [f"format={FORMAT}", *settings]
    for number, folder in enumerate(folders):
        for file in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
            place, stamp = str(file.resolve()), _stamp(file)
            entry = hashes.get(place)
            digest = entry[1] if entry is not None and entry[0] == stamp else sha256(file, cancel)
            if time.time_ns() - stamp[2] > SETTLED_S * 1e9:
                current[place] = [stamp, digest]
            parts.append(f"{number}/{file.name}={digest}")
    if any(hashes.get(place) != entry for place, entry in current.items()):
        _write(known, hashes | current)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _stamp(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read(known: Path) -> dict[str, list]:
    try:
        content = json.loads(known.read_text(encoding="utf-8"))
        return {place: [list(map(int, stamp)), str(digest)] for place, (stamp, digest) in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("the known hashes in %s cannot be read and are made again: %r", known, error)
        return {}


def _write(known: Path, hashes: dict[str, list]) -> None:
    try:
        known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = known.with_suffix(".part")
        part.write_text(json.dumps(hashes), encoding="utf-8")
        part.replace(known)
    except OSError as error:
        log.warning("the hashes of models cannot be kept in %s: %s", known, error)
