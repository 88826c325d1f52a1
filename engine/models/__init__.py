"""Models on this machine: which pairs there are, where their files lie, and how the starter is set up. No MLX here.

``ensure_starter`` sets the starter pair up and returns it; ``resolve_pair`` only looks. Each name is imported on first
use, so the window pays for none of it at its start.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from engine.models.entries import PairEntry, PairState, ResolvedPair

if TYPE_CHECKING:
    from engine.models.catalog import list_pairs, resolve_pair
    from engine.models.gguf_import import import_gguf
    from engine.models.starter import ensure_starter, verify_starter

__all__ = [
    "PairEntry",
    "PairState",
    "ResolvedPair",
    "ensure_starter",
    "import_gguf",
    "list_pairs",
    "resolve_pair",
    "verify_starter",
]

_HOMES = {
    "ensure_starter": "starter",
    "import_gguf": "gguf_import",
    "list_pairs": "catalog",
    "resolve_pair": "catalog",
    "verify_starter": "starter",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
