"""What the hub cache holds of a file, and making a checked set of files usable there, as the hub's own client lays it out."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Iterable
from pathlib import Path

from engine.errors import Cancelled
from engine.models.download_types import RemoteFile
from engine.models.hub_paths import blob_path, part_path, repository_folder, snapshot_path
from engine.models.manifest import sha256


def content_path(file: RemoteFile, cache: Path | None = None) -> Path | None:
    """Where all of the file's bytes lie in the cache, None where they do not. Sizes only."""
    for path in (blob_path(file, cache), snapshot_path(file.repository, file.revision, cache) / file.path):
        try:
            if path.stat().st_size == file.size:
                return path
        except OSError:
            continue
    return None


def present_bytes(file: RemoteFile, cache: Path | None = None) -> int:
    """How much of the file is here, whole or in part."""
    if content_path(file, cache) is not None:
        return file.size
    try:
        return min(part_path(file, cache).stat().st_size, file.size)
    except OSError:
        return 0


def is_intact(path: Path, file: RemoteFile, cancel: threading.Event | None = None) -> bool:
    """Whether ``path`` has the file's size and hash. Raises ``OSError``, or ``Cancelled``."""
    if path.stat().st_size != file.size:
        return False
    return (sha256(path, cancel) if file.is_sha256 else git_sha1(path, cancel)) == file.digest


def git_sha1(path: Path, cancel: threading.Event | None = None) -> str:
    """The name that git gives the file's content, in hexadecimal."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if cancel is not None and cancel.is_set():
                raise Cancelled("Stopped while checking files.")
            digest.update(chunk)
    return digest.hexdigest()


def publish(files: Iterable[RemoteFile], cache: Path | None = None) -> None:
    """Puts checked files into their snapshots, each config.json last, then lets the branch main stand for them.

    A model folder counts from its config.json on, so nothing half done is ever taken for a model. Raises ``OSError``.
    """
    commits = {}
    for file in sorted(files, key=lambda file: (file.repository, file.path == "config.json")):
        pointer = snapshot_path(file.repository, file.revision, cache) / file.path
        blob = blob_path(file, cache)
        if blob.exists():
            _point(pointer, blob)
        commits[file.repository] = file.revision
    for repository, revision in commits.items():
        reference = repository_folder(repository, cache) / "refs" / "main"
        reference.parent.mkdir(parents=True, exist_ok=True)
        written = reference.with_name(f"main.{uuid.uuid4().hex[:8]}.tmp")
        written.write_text(revision, encoding="utf-8")
        os.replace(written, reference)


def _point(pointer: Path, blob: Path) -> None:
    pointer.parent.mkdir(parents=True, exist_ok=True)
    fresh = pointer.with_name(f".{uuid.uuid4().hex[:8]}.tmp")
    try:
        fresh.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:  # a disk without links holds the content itself there
        os.replace(blob, pointer)
        return
    os.replace(fresh, pointer)
