"""Looks after the models on this machine: checks their files, repairs damaged ones, deletes what nothing else uses."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Cancelled, ModelError, UnknownModel
from engine.models import locate, manifest, paths
from engine.models.catalog import list_pairs, read_catalog
from engine.models.checkpoint import parse_json
from engine.models.download import list_downloads
from engine.models.download_types import REPAIR, DownloadPlan
from engine.models.hub_paths import current_snapshot, hub_cache, is_repository
from engine.models.inventory import installed, size_on_disk
from engine.models.pairing import catalog_draft, local_bases
from engine.models.repository import read_repository
from engine.models.snapshots import git_sha1
from engine.models.starter import STARTER_ID, find_starter

SHA256_LENGTH, SHA1_LENGTH = 64, 40


def verify_model(
    model_id: str, progress: Callable[[float], None] | None = None, cancel: threading.Event | None = None
) -> list[str]:
    """The names of damaged or missing files of an installed model or pair; empty where every hash is right.

    Hub files are named by their hashes, so nothing is asked of the network. ``progress`` gets a fraction in 0..1. Raises
    ``UnknownModel``, ``ModelError`` where it is not here, or ``Cancelled``.
    """
    checks = [check for part in _parts(model_id) for check in _checks(part)]
    total, done, damaged = sum(check.size for check in checks) or 1, 0, []
    for check in checks:
        if cancel is not None and cancel.is_set():
            raise Cancelled("Checking was stopped.")
        if not check.is_intact(cancel):
            damaged.append(check.name)
        done += check.size
        if progress is not None:
            progress(done / total)
    return damaged


def plan_repair(model_id: str, token: str | None = None) -> DownloadPlan:
    """Checks the model and plans the fetching of its damaged files only; run it with ``Downloader``.

    Raises ``DownloadProblem`` or ``UnknownModel``; ``ModelError`` for a model that did not come from the hub.
    """
    files = []
    for part in _parts(model_id):
        damaged = {check.name for check in _checks(part) if not check.is_intact(None)}
        if not damaged:
            continue
        snapshot = current_snapshot(part) if is_repository(part) else None
        if snapshot is None:
            raise ModelError(f"{part} did not come from the hub: {_other_repair(part)}")
        files += [file for file in read_repository(part, token, snapshot.name).files if file.path in damaged]
    name = model_id.rsplit("/", 1)[-1]
    repositories = tuple(dict.fromkeys(file.repository for file in files))
    return DownloadPlan(f"{REPAIR}{model_id}", name, repositories, tuple(files), sum(file.size for file in files), 0)


def delete_model(model_id: str) -> int:
    """Deletes an installed model or a pair and returns the bytes that gave back. Files that another model uses stay.

    Of a pair, a target stays that another pair here needs, and a draft that goes with another target here. Raises
    ``UnknownModel``; ``ModelError`` where it is not ours to delete (LM Studio's), shipped with the program, or being fetched.
    """
    parts = _parts(model_id)
    running = {repository for state in list_downloads() if state.running for repository in state.plan.repositories}
    if running & set(parts):
        raise ModelError(f"{model_id} is being fetched: stop the download first.")
    if not any(_is_here(part) for part in parts):
        raise ModelError(f"{model_id} is not on this machine: there is nothing to delete.")
    if len(parts) > 1 or model_id not in parts:
        ready = {entry.id for entry in list_pairs() if entry.state == "ready"}
        others = [pair for pair in read_catalog() if pair.id in ready and {pair.target, pair.draft} - {None} != set(parts)]
        needed = {part for pair in others for part in (pair.target, pair.draft)}
        targets = [model for model in installed() if not model.is_draft and model.id not in parts]
        needed |= {catalog_draft(model.id, local_bases(model.path)) for model in targets}
        parts = [part for part in parts if part not in needed]
    return sum(_delete(part) for part in parts)


@dataclass(frozen=True, slots=True)
class _Check:
    """One file and what it must be: ``digest`` in hexadecimal, its length telling the kind; "" where only its size is known."""

    name: str
    path: Path
    size: int
    digest: str

    def is_intact(self, cancel: threading.Event | None) -> bool:
        try:
            if self.path.stat().st_size != self.size:
                return False
            if len(self.digest) == SHA256_LENGTH:
                return manifest.sha256(self.path, cancel) == self.digest
            return len(self.digest) != SHA1_LENGTH or git_sha1(self.path, cancel) == self.digest
        except OSError:
            return False


def _parts(model_id: str) -> list[str]:
    """The repositories, or the one folder, that ``model_id`` consists of."""
    model_id = model_id.strip()
    pair = next((pair for pair in read_catalog() if pair.id == model_id), None)
    if model_id == STARTER_ID:
        return [STARTER_ID]
    names = [pair.target, *([pair.draft] if pair.draft else [])] if pair else [model_id]
    if pair is None and not Path(model_id).expanduser().is_dir():
        names = [name for name in model_id.split("+") if name]
    for name in names:
        if not is_repository(name) and not Path(name).expanduser().is_dir():
            raise UnknownModel(f"{name} is neither a model on this machine nor a hub id: see `slipstream models list`.")
    return names


def _checks(part: str) -> Iterator[_Check]:
    folder = _folder(part)
    if (folder / manifest.NAME).is_file():
        for name, (size, digest) in manifest.listed(folder).items():
            yield _Check(name, folder / name, size, digest)
        return
    for path in sorted(folder.iterdir()):
        digest = path.readlink().name if path.is_symlink() else ""
        yield _Check(path.name, path, path.stat().st_size if path.exists() else -1, digest)
    for name in _missing_weights(folder):
        yield _Check(name, folder / name, -1, "")


def _missing_weights(folder: Path) -> list[str]:
    """Weight files that the index names and the folder lacks."""
    try:
        named = set(parse_json((folder / "model.safetensors.index.json").read_bytes())["weight_map"].values())
    except FileNotFoundError:
        return [] if any(folder.glob("model*.safetensors")) else ["model.safetensors"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return []
    return sorted(name for name in named if not (folder / name).is_symlink() and not (folder / name).exists())


def _folder(part: str) -> Path:
    if part == STARTER_ID:
        starter = find_starter()
        return starter.target if starter is not None else paths.models_folder() / STARTER_ID / "target"
    own = Path(part).expanduser()
    folder = own if own.is_dir() else locate.find(part) or current_snapshot(part)
    if folder is None:
        raise ModelError(f"{part} is not on this machine: fetch it with `slipstream models add {part}`.")
    return folder


def _is_here(part: str) -> bool:
    own = Path(part).expanduser()
    return part == STARTER_ID or own.is_dir() or current_snapshot(part) is not None or locate.find(part) is not None


def _other_repair(part: str) -> str:
    return "run `slipstream models add starter`." if part == STARTER_ID else "import or copy it again."


def _delete(part: str) -> int:
    if part == STARTER_ID:
        raise ModelError("The starter pair comes with the program and stays: choose another model to delete.")
    own = Path(part).expanduser()
    if own.is_dir():
        if own.resolve().parent != paths.models_folder().resolve():
            raise ModelError(f"{own} is not one of Slipstream's folders: delete it where it was made.")
        freed = size_on_disk(own)
        try:
            shutil.rmtree(own)
        except OSError as error:
            raise ModelError(f"{own} cannot be deleted ({error.strerror}): see whether it is locked, and try again.") from error
        return freed
    if current_snapshot(part) is None:
        if locate.find(part) is not None:
            raise ModelError(f"{part} belongs to LM Studio: delete it there.")
        return 0
    return _delete_cached(part)


def _delete_cached(repository: str) -> int:
    """By the hub's own client, which knows what else its cache shares between repositories."""
    from huggingface_hub import scan_cache_dir

    found = [repo for repo in scan_cache_dir(hub_cache()).repos if repo.repo_type == "model" and repo.repo_id == repository]
    if not found:
        return 0
    before = size_on_disk(found[0].repo_path)
    scan_cache_dir(hub_cache()).delete_revisions(*(revision.commit_hash for revision in found[0].revisions)).execute()
    if current_snapshot(repository) is not None:  # what the system refuses it only logs
        raise ModelError(f"{found[0].repo_path} cannot be deleted (files are left): see whether it is locked, and try again.")
    return before - (size_on_disk(found[0].repo_path) if found[0].repo_path.exists() else 0)
