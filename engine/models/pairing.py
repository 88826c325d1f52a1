"""Finds the draft for a target: by the catalog, by what a conversion was made from, and by how drafts are named on the hub."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.models.catalog import CatalogPair, read_catalog
from engine.models.checkpoint import is_draft_config, parse_json
from engine.models.download_types import DownloadProblem
from engine.models.hub_client import ask
from engine.models.repository import RemoteRepository, base_models, read_repository
from engine.models.store_types import InstalledModel

CANDIDATES = 8
DRAFT_NAME = re.compile(r"[-_.](dflash2?|speculator\.dflash2?)(-.*)?$", re.IGNORECASE)
# What a conversion adds to the name of the model it was made from.
ADDED = re.compile(
    r"[-_.](mlx|bf16|fp16|mxfp4|nvfp4|awq|gptq|dwq|optiq|qat|[1-8](\.\d+)?[-_]?bits?|q[1-8]|fp8|int[48])(?=[-_.]|$)", re.IGNORECASE
)


def no_draft(name: str) -> str:
    """Why a target is fetched alone, in words."""
    return f"No draft is known for {name}: it runs with lookup, which proposes what stood in the text before"


def catalog_draft(repository: str, bases: Iterable[str] = ()) -> str | None:
    """The draft that the catalog has for this target or for what it was made from."""
    names = {repository.lower(), *(base.lower() for base in bases)}
    return next((pair.draft for pair in read_catalog() if pair.draft and names & _names(pair)), None)


def local_bases(folder: Path) -> tuple[str, ...]:
    """What the model in ``folder`` was made from, by the card that was fetched with it."""
    try:
        card = (folder / "README.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ()
    head = card.split("\n---", 1)[0] if card.startswith("---") else ""
    found = re.search(r"^base_model:((?:[ \t]+\S+)|(?:\s*\n[ \t]*-[ \t]+\S+)+)", head, re.MULTILINE)
    return tuple(re.findall(r"[\w.-]+/[\w.-]+", found[1])) if found else ()


def find_draft(target: RemoteRepository, token: str | None = None) -> str | None:
    """The repository of a draft that fits ``target``, None where none is known. Raises ``DownloadProblem``."""
    known = catalog_draft(target.id, target.bases)
    if known:
        return known
    for name in dict.fromkeys((*target.bases, target.id)):
        found = ask("models", {"search": f"{plain_name(name)} DFlash", "limit": CANDIDATES, "sort": "downloads"}, token)
        for info in found if isinstance(found, list) else []:
            if _is_named_for(info, name, target) and _fits(info["id"], target, token):
                return str(info["id"])
    return None


def plain_name(repository: str) -> str:
    """The model's name without its owner and without what a conversion adds."""
    return ADDED.sub("", repository.rsplit("/", 1)[-1])


def draft_matches(draft: dict[str, Any], target: dict[str, Any]) -> bool:
    """Whether the numbers that a draft's config.json shares with its target's agree; what is absent is not held against it."""
    shapes = [draft.get("transformer_layer_config") or draft, target.get("text_config") or target]
    for key in ("hidden_size", "vocab_size"):
        values = {shape[key] for shape in shapes if isinstance(shape.get(key), int)}
        if len(values) > 1:
            return False
    layers = draft.get("num_target_layers")
    return layers in (None, shapes[1].get("num_hidden_layers"))


def belongs_to(draft: InstalledModel, target: InstalledModel) -> bool:
    """Whether an installed draft is named for an installed target and the numbers of both agree. Reads their configs."""
    if DRAFT_NAME.sub("", draft.id.rsplit("/", 1)[-1]).lower() != plain_name(target.id).lower():
        return False
    try:
        configs = [parse_json((model.path / "config.json").read_bytes()) for model in (draft, target)]
    except (OSError, ValueError):
        return False
    return draft_matches(configs[0], configs[1])


def _is_named_for(info: Any, name: str, target: RemoteRepository) -> bool:
    if not isinstance(info, dict) or not DRAFT_NAME.search(str(info.get("id"))):
        return False
    made_from = {base.lower() for base in base_models(info.get("tags"))}
    if made_from & {target.id.lower(), *(base.lower() for base in target.bases)}:
        return True
    return DRAFT_NAME.sub("", info["id"].rsplit("/", 1)[-1]).lower() == plain_name(name).lower()


def _fits(repository: str, target: RemoteRepository, token: str | None) -> bool:
    try:
        config = read_repository(repository, token).config
    except DownloadProblem as problem:
        if problem.kind in ("gated", "missing"):
            return False
        raise
    return is_draft_config(config) and draft_matches(config, target.config)


def _names(pair: CatalogPair) -> set[str]:
    return {name.lower() for name in (pair.target, pair.base) if name}
