"""Choosing a token from the target's logits so that the choice at a position depends on nothing but logits, seed and position.

That makes speculative decoding lossless at any temperature without a rejection rule: every emitted token is the target's own
draw, a proposal is accepted when it equals that draw, and the same seed gives the same text in every mode. (With a proposal
that is a single token this accepts with probability p(proposal), as the Leviathan/Chen rule does for a one-point draft.)
"""

from __future__ import annotations

import mlx.core as mx


class Sampler:
    """Greedy at temperature 0, otherwise Gumbel-max with noise keyed by (seed, absolute position)."""

    def __init__(self, temperature: float, seed: int):
        self._temperature, self._seed = temperature, seed

    def pick(self, logits: mx.array, position: int) -> mx.array:
        """Token ids [L] for ``logits`` [L, V], whose first row chooses the token at absolute ``position``."""
        if self._temperature == 0:
            return mx.argmax(logits, axis=-1)
        noise = mx.stack([self._noise(position + row, logits.shape[-1]) for row in range(logits.shape[0])])
        return mx.argmax(logits.astype(mx.float32) / self._temperature + noise, axis=-1)

    def _noise(self, position: int, width: int) -> mx.array:
        key = mx.random.key((self._seed * 0x9E3779B97F4A7C15 + position) % 2**64)  # odd factor: seeds do not share positions
        return mx.random.gumbel((width,), key=key)
