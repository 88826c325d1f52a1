"""Which pairs there are (resources/catalog.json) and where the files of one lie: a catalog id, a folder or a hub id."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError, UnknownModel
from engine.models import locate, paths, starter
from engine.models.entries import PairEntry, PairState, ResolvedPair
from engine.models.hub_paths import is_repository

FORMAT = 2


@dataclass(frozen=True, slots=True)
class CatalogPair:
    """A pair of the catalog. ``target`` and ``draft`` are hub ids, or "built-in" for what the program brings itself; ``base`` is
    the model that the draft was trained for, of which ``target`` is a conversion. ``family`` is the target's model_type.

    ``download_bytes`` is what a set-up fetches, ``disk_bytes`` what the pair then takes, None where only the hub knows;
    ``weights_bytes`` is about what target and draft take, for judging what fits before anything is asked. The caches
    take ``per_token_bytes`` for each token of context and ``state_bytes`` beside, in bf16. ``context_length`` is in tokens,
    ``licence`` the target's, an SPDX name where there is one. ``gated``: the hub asks for an account that accepted its terms.
    """

    id: str
    name: str
    description: str
    family: str
    precision: str
    base: str
    target: str
    draft: str | None
    block_length: int | None
    download_bytes: int | None
    disk_bytes: int | None
    weights_bytes: int | None
    per_token_bytes: int | None
    state_bytes: int | None
    context_length: int | None
    licence: str
    gated: bool


def read_catalog(path: Path | None = None) -> list[CatalogPair]:
    """The catalog's pairs in their order. Raises ``ModelError`` where the file is damaged."""
    path = path or paths.resources_folder() / "catalog.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ModelError(f"{path} has format {content['format']}, this program reads {FORMAT}: update Slipstream.")
        return [CatalogPair(**pair) for pair in content["pairs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"The catalog {path} cannot be read: install Slipstream again.") from error


def list_pairs() -> list[PairEntry]:
    """Every pair of the catalog with its state on this machine. Cheap enough for the window's start."""
    return [_entry(pair) for pair in read_catalog()]


def resolve_pair(text: str) -> ResolvedPair:
    """Where the files of ``text`` lie: a catalog id, or ``TARGET[+DRAFT]`` of local folders or hub ids fetched before.

    A catalog id as TARGET stands for that pair's target. A ``+`` inside the name of an existing folder is part of the name.
    Nothing is fetched or set up here (see ``ensure_starter``). Raises ``ModelError`` that says how to get what is missing, and
    ``UnknownModel`` for a name that means nothing.
    """
    text = text.strip()
    if not text:
        raise UnknownModel("No model was named: use `starter`, a model folder or a hub id.")
    pairs = {pair.id: pair for pair in read_catalog()}
    if text in pairs:
        return _resolve_catalog(pairs[text])
    target, draft = _split(text)
    if not target.strip() or (draft is not None and not draft.strip()):
        raise UnknownModel("One side of the + is empty: write TARGET+DRAFT, or TARGET alone.")
    if target in pairs and not _is_folder(target):
        name, target_folder = pairs[target].name, _resolve_catalog(pairs[target]).target
    else:
        target_folder = _locate(target)
        name = target_folder.name if _is_folder(target) else target
    return ResolvedPair(text, name, target_folder, _locate(draft) if draft is not None else None)


def _entry(pair: CatalogPair) -> PairEntry:
    state: PairState
    if pair.id == starter.STARTER_ID:
        state = starter.starter_state()
    else:
        parts = [part for part in (pair.target, pair.draft) if part is not None]
        found = [locate.find_complete(part) is not None for part in parts]
        some = any(found) or any(locate.find(part) is not None for part in parts)
        state = "ready" if all(found) else "incomplete" if some else "not set up"
    size = _size_on_disk(pair) if state == "ready" else 0
    about = pair.download_bytes or pair.weights_bytes
    return PairEntry(pair.id, pair.name, pair.description, state, size, about, pair.target, pair.draft, pair.family,
                     pair.precision, pair.licence, pair.gated)  # fmt: skip


def _size_on_disk(pair: CatalogPair) -> int:
    resolved = _resolve_catalog(pair)
    folders = [resolved.target] + ([resolved.draft] if resolved.draft else [])
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def _resolve_catalog(pair: CatalogPair) -> ResolvedPair:
    if pair.id == starter.STARTER_ID:
        found = starter.find_starter()
        if found is None:
            raise ModelError("The starter pair is not set up yet: run `python -m engine.models.starter`.")
        return ResolvedPair(pair.id, pair.name, found.target, found.draft, pair.block_length)
    draft = _locate(pair.draft, pair.id) if pair.draft is not None else None
    return ResolvedPair(pair.id, pair.name, _locate(pair.target, pair.id), draft, pair.block_length)


def _split(text: str) -> tuple[str, str | None]:
    """Cuts TARGET+DRAFT where both sides can exist; hub ids hold no ``+``, so only folders make this hard."""
    if _is_folder(text):
        return text, None
    cuts = [(text[:index], text[index + 1 :]) for index, character in enumerate(text) if character == "+"]
    if not cuts:
        return text, None
    usable = [cut for cut in cuts if _is_folder(cut[0])]
    for fits in (_is_folder, is_repository):
        for target, draft in reversed(usable):
            if fits(draft):
                return target, draft
    return (usable or cuts)[0]


def _is_folder(name: str) -> bool:
    """os.path answers False where pathlib raises: names too long for the disk or with characters it cannot hold."""
    return os.path.isdir(os.path.expanduser(name))


def _locate(name: str, whole: str | None = None) -> Path:
    """A folder that holds a config.json. Raises ``ModelError`` that says to fetch ``whole``, the pair that ``name`` is part of."""
    folder = Path(name).expanduser()
    if _is_folder(name):
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder} has no config.json: choose the folder of a model.")
        return folder.absolute()
    if not is_repository(name):
        raise UnknownModel(f"{name} is neither a model folder nor a hub id: check the path.")
    found = locate.find(name)
    if found is None:
        raise ModelError(f"{name} is not on this machine: fetch it with `slipstream models add {whole or name}`.")
    return found
