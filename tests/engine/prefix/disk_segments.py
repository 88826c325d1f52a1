"""Chains of segments and disk tiers for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx
import numpy as np

from engine.prefix.disk import DiskTier
from engine.prefix.segment import Segment

CONTENT = "c0" * 32
LIMIT = 2**40
NEVER = 2**62


def make_tier(folder: Path, budget: int = LIMIT, hourly: int = LIMIT, **options) -> DiskTier:
    """A tier that leaves no room to others, so that small test disks do."""
    return DiskTier(folder, budget, hourly, **{"reserve_bytes": 0, **options})


def segment(tokens: Sequence[int], after: Segment | None = None, width: int = 16, state: bool = True) -> Segment:
    """A segment of ``tokens`` whose rows depend on them, so that any mix-up shows."""
    rows = mx.array(np.outer(np.asarray(tokens, dtype=np.float32), np.arange(1, width + 1, dtype=np.float32)))
    logits = {"logits": mx.array(np.asarray(tokens[-1:], dtype=np.float32))} if state else {}
    return Segment(after.key if after else CONTENT, after.end if after else 0, tuple(tokens), {"keys": rows}, logits)


def chain(tokens: Sequence[int], length: int, after: Segment | None = None, width: int = 16) -> list[Segment]:
    """``tokens`` cut into segments of ``length``."""
    segments: list[Segment] = []
    for start in range(0, len(tokens), length):
        segments.append(segment(tokens[start : start + length], segments[-1] if segments else after, width))
    return segments


def stored(tier: DiskTier, segments: Sequence[Segment]) -> None:
    """Stores all and waits until they are written."""
    for part in segments:
        tier.store(part)
    assert tier.flush(30)


def found(tier: DiskTier, tokens: Sequence[int]) -> int:
    """How many of ``tokens`` the tier has."""
    return sum(match.tokens for match in tier.match(CONTENT, tokens))


def same(one: Segment | None, other: Segment) -> bool:
    """Equal in every field and every bit."""
    return one is not None and _facts(one) == _facts(other)


def _facts(one: Segment) -> tuple:
    arrays = {
        (part, name): (str(array.dtype), tuple(array.shape), mx.contiguous(array).reshape(-1).view(mx.uint8).tolist())
        for part in ("rows", "state")
        for name, array in getattr(one, part).items()
    }
    return one.key, one.parent, one.start, one.token_ids, arrays
