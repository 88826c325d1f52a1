"""Says what has to be fetched for a pair or a repository of the hub: files, sizes and hashes at a fixed commit."""

from __future__ import annotations

from engine.models.download_types import DownloadPlan


def plan_download(wanted: str, token: str | None = None, with_draft: bool = True) -> DownloadPlan:
    """Asks the hub what ``wanted`` consists of: a catalog id, a hub id, or ``TARGET+DRAFT`` of hub ids. Blocks for seconds.

    The draft that fits a lone target is found and planned with it, unless ``with_draft`` is False. What this machine already holds
    (hub cache, LM Studio) is not planned again. ``token`` None takes the kept one. Raises ``DownloadProblem``, ``UnknownModel``.
    """
    raise NotImplementedError
