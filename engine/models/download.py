"""Fetches a plan's files into the hub cache: resumable at the byte, checked by size and hash, published all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from engine.models.download_types import DownloadPlan, DownloadState, Outcome, Progress


class Downloader:
    """One run of a download. ``run`` blocks its thread; the events may be set from any other.

    ``folder`` None is the hub's own cache (HF_HOME and HF_HUB_CACHE count). ``token`` None takes the kept one. ``on_progress`` is
    called on the running thread, about five times a second. ``pause`` keeps what was fetched, ``cancel`` removes it; either acts
    within a second and leaves no thread behind.
    """

    def __init__(
        self,
        plan: DownloadPlan,
        folder: Path | None = None,
        token: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        pause: threading.Event | None = None,
        cancel: threading.Event | None = None,
    ):
        raise NotImplementedError

    def run(self) -> Outcome:
        """Fetches what is missing, checks every file and makes the models usable. Lost connections are taken up again by itself.

        Raises ``DownloadProblem``; what was fetched stays for the next run with the same plan, also after a kill.
        """
        raise NotImplementedError


def list_downloads() -> list[DownloadState]:
    """The downloads that are not finished, oldest first, also those of earlier runs of the program."""
    raise NotImplementedError


def discard(download_id: str) -> int:
    """Removes an unfinished download and returns the bytes that gave back. Nothing that another download or model uses is touched.

    Raises ``ModelError`` where it runs now.
    """
    raise NotImplementedError
