"""Where a repository's files lie on this machine: the hub cache first, then LM Studio's folders. The one place that decides it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from engine.errors import ModelError
from engine.models.checkpoint import Config, is_draft_config, weight_files
from engine.models.hub_paths import current_snapshot, is_repository

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")  # any of them; other tools may have fetched less than we need


def find(repository: str) -> Path | None:
    """The folder of ``repository`` that has a config.json, usable or not; a usable one is preferred. Never asks the network."""
    folders = [folder for folder in _folders(repository) if (folder / "config.json").is_file()]
    return next((folder for folder in folders if problem(folder) is None), folders[0] if folders else None)


def find_complete(repository: str) -> Path | None:
    """As ``find``, but None where weights are missing or cut short."""
    folder = find(repository)
    return folder if folder is not None and problem(folder) is None else None


def problem(folder: Path) -> str | None:
    """Why the model in ``folder`` cannot be used, None where everything is there that loading reads and every weight file has its
    full length. Reads headers only.
    """
    try:
        config = Config.read(folder)
        weight_files(folder)
    except ModelError as error:
        return str(error)
    if not is_draft_config(config.values) and not any((folder / name).exists() for name in TOKENIZERS):
        return f"{folder} has no tokenizer: download the model again."
    return None


def studio_folders() -> list[Path]:
    """LM Studio's folders of models that exist: OWNER/NAME/files in each."""
    home = Path.home()
    pointer = home / ".lmstudio-home-pointer"
    places = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        places.insert(0, Path(pointer.read_text(encoding="utf-8").strip()).expanduser())
    return [folder for folder in dict.fromkeys(place / "models" for place in places) if folder.is_dir()]


def _folders(repository: str) -> Iterator[Path]:
    if not is_repository(repository):
        return
    snapshot = current_snapshot(repository)
    if snapshot is not None:
        yield snapshot
    owner, name = repository.split("/")
    for models in studio_folders():
        yield models / owner / name
