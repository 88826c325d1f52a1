"""What a draft is trained to lower: cross-entropy to the target's choice and to its whole distribution, weighted by slot.

N texts, A blocks of B slots, K head rows.
"""

from __future__ import annotations

import mlx.core as mx

DPACE_FLOOR = 0.5
NEVER = 30.0  # nats for a token outside the draft's vocabulary: it is never accepted
PAPER_GAMMA = ((8, 4.0), (10, 5.0), (64, 7.0))  # arXiv:2602.06036 A.1, by block length


def decay_weights(slots: int, first_slot: int, gamma: float | None) -> mx.array:
    """exp(-(k-1)/gamma) [B] for the k-th proposal; nothing for slots that propose none."""
    gamma = gamma or next(value for length, value in PAPER_GAMMA if slots <= length)
    order = mx.arange(slots) - first_slot
    return mx.where(order >= 0, mx.exp(-order / gamma), 0.0)


def dpace_weights(hard: mx.array, scored: mx.array) -> mx.array:
    """D-PACE (arXiv:2605.18810) [.., B]: how much a better slot would lengthen the accepted prefix, from the detached
    probabilities exp(-``hard``) of the labels."""
    chance = (1 - DPACE_FLOOR) * mx.exp(-mx.stop_gradient(hard)) + DPACE_FLOOR
    reached = mx.cumprod(mx.where(scored, chance, 1.0), axis=-1) * scored
    return mx.cumsum(reached, axis=-1, reverse=True) * scored


def block_loss(
    logits: mx.array,
    labels: mx.array,
    scored: mx.array,
    teacher: mx.array | None,
    *,
    kind: str,
    distil: float,
    first_slot: int,
    gamma: float | None = None,
) -> tuple[mx.array, mx.array]:
    """The loss, and the mean tokens a cycle would commit over all blocks that score anything.

    ``logits`` [N, A, B, K]; ``labels`` [N, A, B] indices in K, -1 for a token outside; ``scored`` [N, A, B]; ``teacher``
    [N, A, B, K] the target's probabilities over the same rows, None for none.
    """
    logs = logits.astype(mx.float32)
    logs = logs - mx.logsumexp(logs, axis=-1, keepdims=True)
    known = labels >= 0
    hard = -mx.take_along_axis(logs, mx.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    hard = mx.where(known, hard, NEVER)
    weights = dpace_weights(hard, scored) if kind == "dpace" else decay_weights(labels.shape[-1], first_slot, gamma) * scored
    weights = mx.stop_gradient(weights)
    each = hard * known
    if teacher is not None and distil > 0:
        soft = -(mx.stop_gradient(teacher) * logs).sum(-1)
        each = (1 - distil) * each + distil * soft
    loss = (weights * each).sum() / mx.maximum(weights.sum(), 1e-6)
    right = ((mx.argmax(logits, axis=-1) == labels) & scored)[..., first_slot:]
    live = scored.any(axis=-1)
    accepted = mx.cumprod(right.astype(mx.int32), axis=-1).sum(-1)
    return loss, 1 + (accepted * live).sum() / mx.maximum(live.sum(), 1)
