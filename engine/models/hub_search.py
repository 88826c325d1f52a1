"""Searches the hub for models that run here."""

from __future__ import annotations

from typing import Any

from engine.models.hub_client import ask
from engine.models.pairing import DRAFT_NAME, catalog_draft
from engine.models.repository import base_models
from engine.models.runnable import refusal
from engine.models.store_types import HubModel
from engine.targets.families import supported_families

EXPAND = ("config", "downloads", "gated", "safetensors", "tags")
BITS = {"F64": 64, "I64": 64, "F32": 32, "I32": 32, "U32": 32, "BF16": 16, "F16": 16, "I16": 16, "F8_E4M3": 8, "I8": 8, "U8": 8}


def search_hub(text: str, limit: int = 30, token: str | None = None) -> list[HubModel]:
    """Models whose name fits ``text``, most downloaded first. Blocks for seconds. Raises ``DownloadProblem``.

    Drafts are left out: they come with their target.
    """
    parameters = {"search": text.strip(), "limit": limit, "sort": "downloads", "filter": "safetensors", "expand[]": list(EXPAND)}
    found = ask("models", parameters, token)
    return [_model(info) for info in found if isinstance(info, dict) and "id" in info and not DRAFT_NAME.search(info["id"])]


def _model(info: dict[str, Any]) -> HubModel:
    config, tags = info.get("config") or {}, info.get("tags") or []
    family = str(config.get("model_type") or "")
    return HubModel(
        repository=info["id"],
        downloads=int(info.get("downloads") or 0),
        size_bytes=_size(info.get("safetensors")),
        gated=bool(info.get("gated")),
        licence=next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), ""),
        family=family,
        supported=refusal(config, info["id"]) is None,
        draft=catalog_draft(info["id"], base_models(tags)),
        takes_draft=family in supported_families(),
    )


def _size(safetensors: Any) -> int | None:
    """The weights' bytes from the hub's count of values by type."""
    counts = safetensors.get("parameters") if isinstance(safetensors, dict) else None
    if not isinstance(counts, dict) or not counts:
        return None
    return sum(int(count) * BITS.get(kind, 16) // 8 for kind, count in counts.items())
