"""Finds the models that this machine holds: our own, the hub cache's, LM Studio's."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.models import locate, paths
from engine.models.catalog import read_catalog
from engine.models.checkpoint import is_draft_config, parse_json
from engine.models.hub_paths import PREFIX, current_snapshot, hub_cache
from engine.models.runnable import folder_problem
from engine.models.starter import STARTER_ID, find_starter
from engine.models.store_types import InstalledModel, ModelSource, ModelState

GGUF_KEYS = 8  # the architecture stands among the first


def installed() -> list[InstalledModel]:
    """Every model and draft found, usable or not, largest first. Reads folders and headers only."""
    found = [*_own(), *_hub_cache(), *_studio()]
    return sorted(found, key=lambda model: (-model.bytes, model.id))


def describe_folder(folder: Path) -> InstalledModel:
    """The model in any ``folder``, usable or not; of its size only the files that lie in the folder itself are counted."""
    return _model(str(folder), "folder", folder, sum(file.stat().st_size for file in folder.iterdir() if file.is_file()))


def _own() -> Iterator[InstalledModel]:
    starter = find_starter()
    if starter is not None:
        parts = [folder for folder in (starter.target, starter.draft) if folder is not None]  # the draft is no model of its own
        yield _model(STARTER_ID, "slipstream", starter.target, sum(map(size_on_disk, parts)))
    folder = paths.models_folder()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name != STARTER_ID and not path.name.startswith(".") and (path / "config.json").is_file():
            yield _model(str(path), "folder", path)


def _hub_cache() -> Iterator[InstalledModel]:
    cache = hub_cache()
    for folder in sorted(cache.glob(f"{PREFIX}*")) if cache.is_dir() else ():
        repository = folder.name.removeprefix(PREFIX).replace("--", "/")
        snapshot = current_snapshot(repository)
        if snapshot is not None and any(path.name == "config.json" or path.suffix == ".safetensors" for path in snapshot.iterdir()):
            yield _model(repository, "hub cache", snapshot, size_on_disk(folder))


def _studio() -> Iterator[InstalledModel]:
    for models in locate.studio_folders():
        for folder in sorted(path for path in models.glob("*/*") if path.is_dir()):
            if (folder / "config.json").is_file():
                name = f"{folder.parent.name}/{folder.name}"
                yield _model(name if locate.find(name) == folder else str(folder), "lm studio", folder)
            for file in sorted(folder.glob("*.gguf")):
                if not file.name.startswith("mmproj"):
                    yield _gguf(file)


def _model(name: str, source: ModelSource, folder: Path, size: int | None = None) -> InstalledModel:
    config = _config(folder)
    damage, refused = locate.problem(folder), folder_problem(folder)
    return InstalledModel(
        id=name,
        source=source,
        path=folder,
        bytes=size_on_disk(folder) if size is None else size,
        state="incomplete" if damage else "unsupported" if refused else "ready",
        used_by=used_by(name),
        problem=damage or refused or "",
        family=str(config.get("model_type") or ""),
        is_draft=is_draft_config(config),
    )


def _gguf(file: Path) -> InstalledModel:
    architecture = gguf_architecture(file)
    state: ModelState = "importable" if architecture == "llama" else "unsupported"
    problem = (
        "a GGUF file has to be imported before it runs"
        if state == "importable"
        else f"a GGUF file of the architecture {architecture or 'unknown'}; only llama can be imported: get an MLX conversion"
    )
    return InstalledModel(str(file), "lm studio", file, file.stat().st_size, state, (), problem, architecture)


def used_by(name: str) -> tuple[str, ...]:
    """The catalog's pairs that consist of ``name`` and something else."""
    return tuple(pair.id for pair in read_catalog() if name in (pair.id, pair.target, pair.draft))


def size_on_disk(folder: Path) -> int:
    """Bytes of the files below ``folder``, each content counted once however many links lead to it."""
    seen: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.stat(os.path.join(parent, name))
            except OSError:  # a link to nothing
                continue
            seen[found.st_dev, found.st_ino] = found.st_size
    return sum(seen.values())


def gguf_architecture(file: Path) -> str:
    """``general.architecture`` of a GGUF file, "" where it does not stand among the first keys."""
    try:
        with file.open("rb") as stream:
            if stream.read(4) != b"GGUF":
                return ""
            _version, _tensors, keys = struct.unpack("<IQQ", stream.read(20))
            for _ in range(min(keys, GGUF_KEYS)):
                key = stream.read(_length(stream.read(8)))
                (kind,) = struct.unpack("<I", stream.read(4))
                sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
                if kind != 8 and kind not in sizes:
                    return ""  # an array: what follows is not worth reading
                value = stream.read(_length(stream.read(8)) if kind == 8 else sizes[kind])
                if key == b"general.architecture":
                    return value.decode("utf-8", "replace")
    except (OSError, struct.error, ValueError):
        return ""
    return ""


def _length(data: bytes) -> int:
    (length,) = struct.unpack("<Q", data)
    if length > 2**16:
        raise ValueError("no text of a header is so long")
    return int(length)


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = parse_json((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
