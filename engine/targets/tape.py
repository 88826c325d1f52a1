"""The gated delta rule written out: each step's innovation is kept, and any prefix of the steps can be added to a state again.

One step:  innovation = beta * (value - (gate * state) key);  state = gate * state + innovation key^T.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Tape:
    """What T steps added to ``state`` [1, Hv, Dv, Dk]: ``keys`` [1, T, Hv, Dk], ``gates`` [1, T, Hv] and ``innovations``
    [1, T, Hv, Dv]."""

    state: mx.array
    keys: mx.array
    gates: mx.array
    innovations: mx.array

    @classmethod
    def record(cls, keys: mx.array, values: mx.array, gates: mx.array, betas: mx.array, state: mx.array | None) -> Tape:
        """Runs the rule. ``keys`` [1, T, Hk, Dk], ``values`` [1, T, Hv, Dv], ``gates`` and ``betas`` [1, T, Hv]; None is zero."""
        rows, value_heads = values.shape[1:3]
        keys = mx.repeat(keys, value_heads // keys.shape[2], axis=2)
        start = mx.zeros((1, value_heads, values.shape[3], keys.shape[3])) if state is None else state
        innovations, current = [], start
        for row in range(rows):
            key, decayed = keys[:, row, :, None, :], current * gates[:, row, :, None, None]
            innovation = (values[:, row] - (decayed * key).sum(-1)) * betas[:, row, :, None]
            current = decayed + key * innovation[..., None]
            innovations.append(innovation)
        return cls(start, keys, gates, mx.stack(innovations, axis=1))

    def state_after(self, steps: int) -> mx.array:
        """The state after the first ``steps``."""
        state = self.state
        for row in range(steps):
            added = self.keys[:, row, :, None, :] * self.innovations[:, row, :, :, None]
            state = state * self.gates[:, row, :, None, None] + added
        return state
