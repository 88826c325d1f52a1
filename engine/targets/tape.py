"""The gated delta rule written out: each step's innovation is kept, and any prefix of the steps can be added to a state again.

One step:  innovation = beta * (value - (gate * state) key);  state = gate * state + innovation key^T;  read = state query.
T steps, Hv value heads, Dk/Dv sizes of keys and values.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

CHECKPOINTS = 4  # parts of a pass: at the end of each but the last the state itself is kept, so that a replay is never long
SHORTEST = 4  # steps of such a part


@dataclass(frozen=True, slots=True)
class Tape:
    """What T steps added: ``keys`` [1, T, Hv, 1, Dk], ``gates`` [1, T, Hv, 1, 1] and ``innovations``, one [1, Hv, Dv] a step.

    ``states`` [1, Hv, Dv, Dk] holds the state before the first step and after every further ``stride`` of them.
    """

    keys: mx.array
    gates: mx.array
    innovations: list[mx.array]
    states: list[mx.array]
    stride: int

    def state_after(self, steps: int) -> mx.array:
        """The state after the first ``steps``, by the operations that the pass itself ran, hence the same bits."""
        part = min(steps // self.stride, len(self.states) - 1)
        state = self.states[part]
        for step in range(part * self.stride, steps):
            state = _added(state * self.gates[:, step], self.keys[:, step], self.innovations[step])
        return state


def run(
    queries: mx.array, keys: mx.array, values: mx.array, gates: mx.array, betas: mx.array, state: mx.array
) -> tuple[mx.array, mx.array, Tape]:
    """What is read [1, T, Hv, Dv], the state after the pass, and its tape.

    ``queries`` and ``keys`` [1, T, Hk, Dk] where Hk divides Hv, ``values`` [1, T, Hv, Dv], ``gates`` and ``betas`` [1, T, Hv].
    """
    steps, value_heads = values.shape[1:3]
    shared = value_heads // keys.shape[2]
    queries, keys = (mx.repeat(array, shared, axis=2)[..., None, :] for array in (queries, keys))
    gates, betas = gates[..., None, None], betas[..., None]
    stride = max(SHORTEST, -(-steps // CHECKPOINTS))
    reads, innovations, states = [], [], [state]
    for step in range(steps):
        if step and step % stride == 0:
            states.append(state)
        decayed, key = state * gates[:, step], keys[:, step]
        innovations.append((values[:, step] - (decayed * key).sum(-1)) * betas[:, step])
        state = _added(decayed, key, innovations[-1])
        reads.append((state * queries[:, step]).sum(-1))
    return mx.stack(reads, axis=1).astype(queries.dtype), state, Tape(keys, gates, innovations, states, stride)


def _added(decayed: mx.array, key: mx.array, innovation: mx.array) -> mx.array:
    return decayed + key * innovation[..., None]
