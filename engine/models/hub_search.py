"""Searches the hub for models that run here."""

from __future__ import annotations

from engine.models.store_types import HubModel


def search_hub(text: str, limit: int = 30, token: str | None = None) -> list[HubModel]:
    """Models whose name fits ``text``, most downloaded first. Blocks for seconds. Raises ``DownloadProblem``."""
    raise NotImplementedError
