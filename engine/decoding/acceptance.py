"""The acceptance rule: a proposal stands while it equals the target's own choice at its position."""

from __future__ import annotations

import mlx.core as mx


def accepted_prefix(proposals: mx.array, choices: mx.array) -> mx.array:
    """How many leading ``proposals`` [k] equal the target's ``choices`` [k+1] at the same places: a scalar in 0..k."""
    if proposals.shape[0] == 0:
        return mx.array(0, dtype=mx.int32)
    matches = proposals == choices[:-1]
    return mx.cumprod(matches.astype(mx.int32)).sum()
