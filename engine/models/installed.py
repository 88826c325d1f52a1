"""Finds the models that this machine holds: our own, the hub cache's, LM Studio's."""

from __future__ import annotations

from engine.models.store_types import InstalledModel


def installed() -> list[InstalledModel]:
    """Every model and draft found, usable or not, largest first. Reads folders and headers only."""
    raise NotImplementedError
