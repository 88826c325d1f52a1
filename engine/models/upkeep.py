"""Looks after the models on this machine: checks their files, repairs damaged ones, deletes what nothing else uses."""

from __future__ import annotations

import threading
from collections.abc import Callable

from engine.models.download_types import DownloadPlan


def verify_model(
    model_id: str, progress: Callable[[float], None] | None = None, cancel: threading.Event | None = None
) -> list[str]:
    """The names of damaged or missing files of an installed model or pair; empty where every hash is right.

    ``progress`` gets a fraction in 0..1. Raises ``UnknownModel`` or ``Cancelled``.
    """
    raise NotImplementedError


def plan_repair(model_id: str, token: str | None = None) -> DownloadPlan:
    """Checks the model and plans the fetching of its damaged files only; run it with ``Downloader``.

    Raises ``DownloadProblem`` or ``UnknownModel``; ``ModelError`` for a model that did not come from the hub.
    """
    raise NotImplementedError


def delete_model(model_id: str) -> int:
    """Deletes an installed model or a pair and returns the bytes that gave back. Files that another model uses stay.

    Raises ``UnknownModel``; ``ModelError`` where it is not ours to delete (LM Studio's) or shipped with the program.
    """
    raise NotImplementedError
