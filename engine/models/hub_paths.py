"""Where the hub's cache lies and how it names things, as the hub's own client does, without importing that client."""

from __future__ import annotations

import os
import re
from pathlib import Path

from engine.models.download_types import RemoteFile

PREFIX = "models--"
PART = ".slipstream-part"  # not ".incomplete", which the hub's client sweeps


def hub_home() -> Path:
    """HF_HOME, or where the hub's client puts it."""
    home = os.environ.get("HF_HOME")
    if home:
        return Path(os.path.expandvars(home)).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"


def hub_cache() -> Path:
    """The folder with one folder for each repository."""
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(os.path.expandvars(cache)).expanduser() if cache else hub_home() / "hub"


def repository_folder(repository: str, cache: Path | None = None) -> Path:
    return (cache or hub_cache()) / (PREFIX + repository.replace("/", "--"))


def blob_path(file: RemoteFile, cache: Path | None = None) -> Path:
    """Where the file's content lies once it is checked; snapshots link to it."""
    return repository_folder(file.repository, cache) / "blobs" / file.digest


def part_path(file: RemoteFile, cache: Path | None = None) -> Path:
    """Where the file grows while it is fetched."""
    blob = blob_path(file, cache)
    return blob.with_name(blob.name + PART)


def snapshot_path(repository: str, revision: str, cache: Path | None = None) -> Path:
    return repository_folder(repository, cache) / "snapshots" / revision


def lock_path(file: RemoteFile, cache: Path | None = None) -> Path:
    """The lock that the hub's client takes while it fetches the same content."""
    name = repository_folder(file.repository, cache).name
    return (cache or hub_cache()) / ".locks" / name / f"{file.digest}.lock"


def current_snapshot(repository: str, cache: Path | None = None) -> Path | None:
    """The snapshot that the branch main stands for in the cache, None where there is none."""
    folder = repository_folder(repository, cache)
    try:
        commit = (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None


def is_repository(name: str) -> bool:
    """Whether ``name`` is written as the id of a repository: owner/name."""
    return re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", name, re.ASCII) is not None and ".." not in name and "--" not in name
