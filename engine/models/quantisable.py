"""Which ways of keeping a pair in memory its files refuse, told without MLX before anything is loaded."""

from __future__ import annotations

from typing import Any

from engine.models.catalog import resolve_pair
from engine.models.checkpoint import Config
from engine.models.memory_need import layer_kinds, text_config
from engine.targets.families import GATED_DELTA, MAMBA2, SHORT_CONV, SLIDING_WINDOW

SMALLEST_GROUP = 32  # values of a row that share a scale
OTHER_CACHES = frozenset(SLIDING_WINDOW + GATED_DELTA + SHORT_CONV + MAMBA2)


def refused_options(pair: str) -> dict[str, str]:
    """Why ``pair`` cannot be loaded with an option, by its name in ``LoadOptions``; what is not refused here may still fail.

    Raises ``ModelError`` where the pair is not on this machine.
    """
    resolved = resolve_pair(pair)
    refused = {}
    if (reason := _kv_refusal(Config.read(resolved.target).values)) is not None:
        refused["kv_bits"] = reason
    if resolved.draft is None:
        refused["draft_bits"] = "There is no draft to keep in fewer bits."
    return refused


def _kv_refusal(values: dict[str, Any]) -> str | None:
    config, family = text_config(values), str(values.get("model_type"))
    if family in OTHER_CACHES or any(kind != "full" for kind in layer_kinds(config)):
        return f"Only keys and values of plain attention can be kept in fewer bits, and {family!r} models have other caches."
    heads = int(config.get("num_attention_heads") or 1)
    size = int(config.get("head_dim") or int(config.get("hidden_size") or 0) // heads)
    if size % SMALLEST_GROUP:
        return f"Its heads of size {size} do not divide into groups of {SMALLEST_GROUP}."
    return None
