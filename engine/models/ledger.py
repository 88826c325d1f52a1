"""The list of unfinished downloads on disk: each plan in a file of its own, and a lock that says whether it runs now."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engine.models.download_types import DownloadPlan, RemoteFile
from engine.models.paths import cache_folder

FORMAT = 1
A_LOOK_S = 0.5  # ``is_running`` takes the lock for a moment: whoever wants it waits so long before calling the download running


def keep(plan: DownloadPlan) -> None:
    """Notes the download, in place of an older note of it. Raises ``OSError``."""
    path = _path(plan.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(json.dumps({"format": FORMAT, "plan": asdict(plan)}, indent=1), encoding="utf-8")
    os.replace(written, path)


def forget(download_id: str) -> None:
    _path(download_id).unlink(missing_ok=True)


def plans() -> list[DownloadPlan]:
    """What was noted, oldest first. A note that cannot be read is none."""
    found = []
    for path in _folder().glob("*.json"):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] == FORMAT:
                found.append((path.stat().st_mtime, _plan(content["plan"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return [plan for _, plan in sorted(found, key=lambda pair: pair[0])]


def running_lock(download_id: str) -> FileLock:
    """Held by the process that runs the download; ``acquire`` raises ``filelock.Timeout`` where another holds it."""
    _folder().mkdir(parents=True, exist_ok=True)
    return FileLock(_path(download_id).with_suffix(".lock"), timeout=A_LOOK_S)


def is_running(download_id: str) -> bool:
    try:
        with running_lock(download_id).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _plan(values: dict[str, Any]) -> DownloadPlan:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return DownloadPlan(**fields | {"files": tuple(RemoteFile(**file) for file in values["files"])})


def _folder() -> Path:
    return cache_folder() / "downloads"


def _path(download_id: str) -> Path:
    return _folder() / f"{hashlib.sha256(download_id.encode()).hexdigest()[:20]}.json"
