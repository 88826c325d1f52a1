"""Which bigger model to offer on this machine."""

from __future__ import annotations

from engine import models
from engine.models.entries import PairEntry

CONTEXT = 8_192


def suggested(pair: str, memory_bytes: int | None = None) -> PairEntry | None:
    """The largest pair of the catalog that fits this machine with room for 8,192 tokens and is larger than ``pair``; None for none.

    Reads folders, asks no network. ``memory_bytes`` None asks this machine.
    """
    entries = models.list_pairs()
    now = next((_bytes(entry) for entry in entries if entry.id == pair), 0)
    for entry in sorted(entries, key=_bytes, reverse=True):
        fit = models.fits(entry.id, CONTEXT, memory_bytes) if _bytes(entry) > now else None
        if fit is not None and fit.verdict == "fits":
            return entry
    return None


def _bytes(entry: PairEntry) -> int:
    return entry.download_bytes or entry.size_bytes
