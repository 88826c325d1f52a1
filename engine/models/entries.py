"""What the models room tells the rest: plain data about pairs on this machine. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PairState = Literal["ready", "not set up", "incomplete"]


@dataclass(frozen=True, slots=True)
class PairEntry:
    """One row of the model list. ``size_bytes`` is on disk (0 while not set up), ``download_bytes`` about what a set-up
    fetches (None: only the hub knows). ``target`` and ``draft`` are hub ids, or "built-in".
    """

    id: str
    name: str
    description: str
    state: PairState
    size_bytes: int
    download_bytes: int | None = None
    target: str = ""
    draft: str | None = None
    family: str = ""
    precision: str = ""
    licence: str = ""
    gated: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedPair:
    """Where a pair's files are. ``draft`` is None for a target without one.

    ``block_length`` None leaves it to the draft's config.
    """

    id: str
    name: str
    target: Path
    draft: Path | None
    block_length: int | None = None
