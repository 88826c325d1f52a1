"""What downloading is told in: a plan of files, progress, the state on disk, and problems with one action each. No Qt, no MLX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import SlipstreamError

REPAIR = "repair "  # how a plan is called that fetches damaged files again, before the model's id

ProblemKind = Literal["gated", "missing", "token", "network", "proxy", "certificate", "disk", "hash", "rate", "unsupported"]
Phase = Literal["waiting", "downloading", "retrying", "checking"]
Outcome = Literal["done", "paused", "cancelled"]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a repository at a fixed commit.

    ``digest`` is the content's SHA-256 for large files (``is_sha256``) and git's blob SHA-1 for small ones. It is also the name of
    the file's blob in the hub cache.
    """

    repository: str
    revision: str
    path: str
    size: int
    digest: str
    is_sha256: bool


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """What must be fetched so that ``id`` (a catalog id or ``TARGET[+DRAFT]``) can be loaded; it also names the download.

    ``repositories`` are all it consists of; ``found`` those of them that this machine holds already, so that ``files`` has none of
    theirs. ``total_bytes`` counts ``files``; ``present_bytes`` of them are here already. ``draft`` is the draft's repository; where
    it is None, ``no_draft_reason`` says why in words.
    """

    id: str
    name: str
    repositories: tuple[str, ...]
    files: tuple[RemoteFile, ...]
    total_bytes: int
    present_bytes: int
    draft: str | None = None
    no_draft_reason: str | None = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is, in bytes. ``remaining_s`` is None while the speed is unknown; ``file`` is the one that moved last.

    ``note`` says in words what is being waited for; it is empty while bytes arrive.
    """

    done: int
    total: int
    bytes_per_s: float
    remaining_s: float | None
    file: str
    phase: Phase = "downloading"
    note: str = ""


@dataclass(frozen=True, slots=True)
class DownloadState:
    """A download that is not finished, as it lies on disk. ``running``: some process works on it now, otherwise it is paused."""

    plan: DownloadPlan
    done_bytes: int
    running: bool

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def total_bytes(self) -> int:
        return self.plan.total_bytes


class DownloadProblem(SlipstreamError):
    """Why a download or a question to the hub failed: ``message`` says what happened, ``action`` what to do, both without a token.

    ``url`` is the page where the user can act ("gated": accept the licence), None where there is none. What was fetched is kept.
    """

    def __init__(self, kind: ProblemKind, message: str, action: str, url: str | None = None):
        self.kind, self.message, self.action, self.url = kind, message, action, url
        super().__init__(f"{message.rstrip('.')}: {action}")
