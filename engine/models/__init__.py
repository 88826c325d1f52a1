"""Models on this machine and on the hub: which pairs there are, where files lie, fetching, checking, deleting. No MLX here.

``ensure_starter`` sets the starter pair up and returns it; ``resolve_pair`` only looks. ``plan_download`` and ``Downloader`` fetch
others. Each name is imported on first use, so the window pays for none of it at its start.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from engine.models.entries import PairEntry, PairState, ResolvedPair

if TYPE_CHECKING:
    from engine.models.catalog import list_pairs, resolve_pair
    from engine.models.download import Downloader, discard, list_downloads
    from engine.models.download_types import DownloadPlan, DownloadProblem, DownloadState, Outcome, Progress, RemoteFile
    from engine.models.fit import check_pair, fits
    from engine.models.gguf_import import import_gguf
    from engine.models.hub_search import search_hub
    from engine.models.hub_token import read_token, save_token
    from engine.models.inventory import describe_folder, installed
    from engine.models.pairing import belongs_to
    from engine.models.planning import plan_download
    from engine.models.quantisable import refused_options
    from engine.models.starter import ensure_starter, verify_starter
    from engine.models.store_types import Fit, HubModel, InstalledModel, MemoryNeed
    from engine.models.upkeep import delete_model, plan_repair, verify_model

_HOMES = {
    "catalog": ("list_pairs", "resolve_pair"),
    "download": ("Downloader", "discard", "list_downloads"),
    "download_types": ("DownloadPlan", "DownloadProblem", "DownloadState", "Outcome", "Progress", "RemoteFile"),
    "fit": ("check_pair", "fits"),
    "gguf_import": ("import_gguf",),
    "hub_search": ("search_hub",),
    "inventory": ("describe_folder", "installed"),
    "pairing": ("belongs_to",),
    "planning": ("plan_download",),
    "quantisable": ("refused_options",),
    "starter": ("ensure_starter", "verify_starter"),
    "store_types": ("Fit", "HubModel", "InstalledModel", "MemoryNeed"),
    "hub_token": ("read_token", "save_token"),
    "upkeep": ("delete_model", "plan_repair", "verify_model"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DownloadPlan",
    "DownloadProblem",
    "DownloadState",
    "Downloader",
    "Fit",
    "HubModel",
    "InstalledModel",
    "MemoryNeed",
    "Outcome",
    "PairEntry",
    "PairState",
    "Progress",
    "RemoteFile",
    "ResolvedPair",
    "belongs_to",
    "check_pair",
    "delete_model",
    "describe_folder",
    "discard",
    "ensure_starter",
    "fits",
    "import_gguf",
    "installed",
    "list_downloads",
    "list_pairs",
    "plan_download",
    "plan_repair",
    "read_token",
    "refused_options",
    "resolve_pair",
    "save_token",
    "search_hub",
    "verify_model",
    "verify_starter",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
