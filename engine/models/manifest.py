"""The list of files inside an imported model, written last: a cheap check at each start, a full one on request."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from engine.errors import Cancelled

NAME = "slipstream.json"
# Raised when an import writes its files differently, so that folders of an older program are imported again.
FORMAT = 1


def sha256(path: Path, cancel: threading.Event | None = None) -> str:
    """The file's SHA-256 in hexadecimal. Raises ``OSError``, or ``Cancelled``."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if cancel is not None and cancel.is_set():
                raise Cancelled("Stopped while checking files.")
            digest.update(chunk)
    return digest.hexdigest()


def write(folder: Path, source_sha256: str | None) -> None:
    """Lists every file of ``folder`` with its size and hash. ``source_sha256``: the file it was imported from."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != NAME
    }
    text = json.dumps({"format": FORMAT, "source_sha256": source_sha256, "files": files}, indent=1)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")


def listed(folder: Path) -> dict[str, tuple[int, str]]:
    """The size in bytes and the SHA-256 of each listed file; empty where the list cannot be read."""
    try:
        files = json.loads((folder / NAME).read_text(encoding="utf-8"))["files"]
        return {name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def problem(folder: Path, source_sha256: str | None = None, full: bool = False) -> str | None:
    """What is wrong with an imported model, in a few words; None when all is well.

    Sizes only, unless ``full``: then every hash is recomputed. ``source_sha256`` also asks for the file it came from.
    """
    try:
        content: dict[str, Any] = json.loads((folder / NAME).read_text(encoding="utf-8"))
        files = content["files"]
        if content["format"] != FORMAT:
            return "it was written by another version"
        if source_sha256 is not None and content["source_sha256"] != source_sha256:
            return "it was imported from another file"
        for name, expected in files.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != expected["bytes"]:
                return f"{name} has the wrong size"
            if full and sha256(path) != expected["sha256"]:
                return f"{name} is damaged"
    except FileNotFoundError:
        return "it is not there"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"{NAME} cannot be read"
    return None
