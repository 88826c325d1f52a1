"""The gated delta rule over whole rows: in chunks, so that training is matrix products; one step of it, for writing.

One step:  innovation = beta * (value - (gate * state)^T key);  state = gate * state + key innovation^T;  output = state^T query.
N rows, H heads, L places, C places in a chunk, Dk and Dv sizes of keys and values; everything fp32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64
SMALLEST = 16  # blocks inverted by a product of powers, which loses digits in larger ones


def invert(lower: Tensor) -> Tensor:
    """(I + lower)^-1 of strictly lower triangular matrices [..., C, C], C a power of two."""
    size = lower.shape[-1]
    if size <= SMALLEST:
        inverse, power = torch.eye(size, device=lower.device, dtype=lower.dtype) - lower, lower
        reached = 2
        while reached < size:  # (I - a)(I + a^2)(I + a^4)...: a^size is zero
            power = power @ power
            inverse, reached = inverse + inverse @ power, reached * 2
        return inverse
    half = size // 2
    top, bottom = invert(torch.stack([lower[..., :half, :half], lower[..., half:, half:]])).unbind(0)
    corner = -bottom @ lower[..., half:, :half] @ top
    return torch.cat([F.pad(top, (0, half)), torch.cat([corner, bottom], -1)], -2)


def gated_delta(query: Tensor, key: Tensor, value: Tensor, log_gate: Tensor, beta: Tensor) -> Tensor:
    """Outputs [N, L, H, Dv] from a state of zero. ``query``, ``key`` [N, L, H, Dk], ``value`` [N, L, H, Dv], ``log_gate`` <= 0 and
    ``beta`` [N, L, H]; L is a multiple of ``CHUNK``."""
    chunks = key.shape[1] // CHUNK

    def cut(rows: Tensor) -> Tensor:
        return rows.unflatten(1, (chunks, CHUNK)).movedim(3, 1).contiguous()  # [N, H, chunks, C, ...]

    query, key, value, log_gate, beta = (cut(rows) for rows in (query, key, value, log_gate, beta))
    total = log_gate.cumsum(-1)
    ones = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=key.device)
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(~ones.tril(), float("-inf")).exp()
    inverse = invert((beta[..., None] * (key @ key.mT) * decay).masked_fill(~ones.tril(-1), 0.0))
    # Innovations of a chunk that begins at state S:  fresh - read S.
    fresh = inverse @ (beta[..., None] * value)
    read = inverse @ ((beta * total.exp())[..., None] * key)
    written = ((total[..., -1:] - total).exp()[..., None] * key).mT
    kept = total[..., -1, None, None].exp()
    state = torch.zeros(*key.shape[:2], key.shape[-1], value.shape[-1], device=key.device, dtype=key.dtype)
    states, innovations = [], []
    for index in range(chunks):
        innovation = fresh[:, :, index] - read[:, :, index] @ state
        states.append(state)
        innovations.append(innovation)
        state = kept[:, :, index] * state + written[:, :, index] @ innovation
    before = (total.exp()[..., None] * query) @ torch.stack(states, 2)
    within = ((query @ key.mT) * decay) @ torch.stack(innovations, 2)
    return (before + within).movedim(1, 3).flatten(1, 2)


def delta_step(state: Tensor, query: Tensor, key: Tensor, value: Tensor, log_gate: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Output [N, H, Dv] and the next state [N, H, Dk, Dv] of one step; ``query``, ``key`` [N, H, Dk], ``log_gate`` [N, H]."""
    state = log_gate.exp()[..., None, None] * state
    innovation = beta[..., None] * (value - (state * key[..., None]).sum(-2))
    state = state + key[..., None] * innovation[..., None, :]
    return (state * query[..., None]).sum(-2), state
