"""What the models room tells the rest: plain data about pairs on this machine. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PairState = Literal["ready", "not set up", "incomplete"]


@dataclass(frozen=True, slots=True)
class PairEntry:
    """One row of the model list. ``size_bytes`` is on disk (0 while not set up)."""

    id: str
    name: str
    description: str
    state: PairState
    size_bytes: int


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
