"""What the window shows of one download, and in which words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from app.core.engine_words import engine_words
from app.core.figures import size, size_of
from app.core.words import tr, trn
from engine.models.download_types import REPAIR, DownloadPlan, Progress

Stage = Literal["asking", "queued", "running", "paused", "waiting", "failed", "done", "cancelling"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a download does not go on: ``message`` says what happened, ``action`` what to do.

    ``kind`` is a ``DownloadProblem``'s, "" for anything else; ``url`` is the page where the user can act.
    """

    kind: str
    message: str
    action: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """One download. ``plan`` is None while the hub is still asked; "waiting": the network is away and it goes on by itself."""

    id: str
    stage: Stage
    plan: DownloadPlan | None = None
    progress: Progress | None = None
    trouble: Trouble | None = None

    @property
    def name(self) -> str:
        return self.plan.name if self.plan is not None else self.id

    @property
    def loads(self) -> str:
        """What can be loaded once it is done."""
        return self.id.removeprefix(REPAIR)

    @property
    def total(self) -> int:
        """Bytes in all, 0 while unknown."""
        return self.plan.total_bytes if self.plan is not None else 0

    @property
    def done(self) -> int:
        """Bytes on disk."""
        return self.progress.done if self.progress is not None else self.plan.present_bytes if self.plan is not None else 0

    @property
    def fraction(self) -> float | None:
        """How much is there, in 0..1; None while the size is unknown."""
        return min(self.done / self.total, 1.0) if self.total else None


def remaining(seconds: float) -> str:
    """A time to wait in words, rounded so that it does not flicker: "less than a minute", "4 min", "2 h 10 min"."""
    if seconds < 60:
        return tr("less than a minute")
    minutes = math.ceil(seconds / 60)
    if minutes >= 60:
        minutes = 10 * math.ceil(minutes / 10)
    hours, rest = divmod(minutes, 60)
    if not hours:
        return tr("{count} min", count=minutes)
    return tr("{hours} h {minutes} min", hours=hours, minutes=rest) if rest else tr("{hours} h", hours=hours)


def state_words(download: Download) -> str:
    """One line: how far it is and what it does, like "3.1 of 9.1 GB, 4 min"."""
    amount = size_of(download.done, download.total) if download.total else ""
    progress = download.progress
    match download.stage:
        case "asking":
            return tr("Asking the hub")
        case "queued":
            return tr("{amount}, waits for its turn", amount=amount) if amount else tr("Waits for its turn")
        case "paused":
            return tr("{amount}, paused", amount=amount) if amount else tr("Paused")
        case "waiting":
            return tr("{amount}, waits for the network", amount=amount) if amount else tr("Waits for the network")
        case "failed":
            return engine_words(download.trouble.message) if download.trouble is not None else ""
        case "cancelling":
            return tr("Removing what was fetched")
        case "done":
            return tr("{amount} fetched and checked", amount=size(download.total))
    if progress is None:
        return tr("{amount}, starting", amount=amount)
    if progress.phase == "checking":
        return tr("{amount}, checking", amount=amount)
    if progress.note:
        return f"{amount}, {engine_words(progress.note)}"
    if progress.remaining_s is None:
        return amount
    return f"{amount}, {remaining(progress.remaining_s)}"


def speed_words(download: Download) -> str:
    """How fast it is, like "12.4 MB/s"; "" where nothing arrives."""
    progress = download.progress
    if download.stage != "running" or progress is None or progress.bytes_per_s <= 0:
        return ""
    return tr("{amount}/s", amount=size(round(progress.bytes_per_s)))


def summary_words(downloads: list[Download]) -> str:
    """One line about all that run; "" where none does."""
    running = [download for download in downloads if download.stage in ("running", "queued", "asking", "waiting")]
    if not running:
        return ""
    amount = size_of(sum(download.done for download in running), sum(download.total for download in running))
    return trn("{count} download, {amount}", "{count} downloads, {amount}", len(running), amount=amount)
