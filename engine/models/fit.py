"""Says whether a model fits this machine's memory: weights and caches at a context against what models may use."""

from __future__ import annotations

from engine.models.store_types import Fit, HubModel, InstalledModel

DEFAULT_CONTEXT = 8192


def fits(model: str | InstalledModel | HubModel, context: int = DEFAULT_CONTEXT, memory_bytes: int | None = None) -> Fit | None:
    """Whether ``model`` (a catalog id, ``TARGET[+DRAFT]``, or what a list gave) runs with ``context`` tokens in the caches.

    ``memory_bytes`` None asks this machine. None where sizes are unknown. Never asks the network.
    """
    raise NotImplementedError
