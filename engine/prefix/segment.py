"""What a pass over one stretch of tokens left behind, so that a later prompt that begins the same way can start after it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np


@dataclass(frozen=True, slots=True)
class Segment:
    """The n tokens at positions ``start`` .. ``end`` - 1, after the prefix that ``parent`` names.

    ``rows`` hold one row a token, [n, ...] each: any leading part of them is usable alone (keys, values, context features).
    ``state`` holds what is true only once all n tokens were seen (window rows, recurrent and convolution states, logits); it is
    empty for a stretch that ends between two boundaries. ``parent`` is the key of the segment before, or the content key of the
    pair for the first one; chained keys make two equal keys mean two equal prefixes of one pair. Arrays are evaluated and
    never written to again.
    """

    parent: str
    start: int
    token_ids: tuple[int, ...]
    rows: Mapping[str, mx.array]
    state: Mapping[str, mx.array]

    @property
    def key(self) -> str:
        return segment_key(self.parent, self.token_ids)

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for part in (self.rows, self.state) for array in part.values())


def segment_key(parent: str, token_ids: Sequence[int]) -> str:
    """64 hex digits that stand for the prefix ``parent`` continued by ``token_ids``."""
    return hashlib.sha256(bytes.fromhex(parent) + np.asarray(token_ids, dtype="<i4").tobytes()).hexdigest()
