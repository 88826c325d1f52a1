"""Packed training blocks: where anchors stand, what each slot may see, what it should say, and the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

DPACE_FLOOR = 0.5
DECAY = {4: 3.0, 8: 4.0, 16: 7.0}  # position decay of the plain loss by block length


@dataclass(frozen=True, slots=True)
class Blocks:
    """N rows of A blocks of B slots. ``positions``, ``inputs`` [N, A*B]; ``labels`` [N, A*B]; ``wanted`` [N, A*B]: the slot is
    scored; ``mask`` [N, 1, A*B, S+A*B] to add to attention scores."""

    positions: Tensor
    inputs: Tensor
    labels: Tensor
    wanted: Tensor
    mask: Tensor
    block: int


def choose_anchors(supervised: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Ascending anchors [N, count] drawn without replacement from places that are supervised and whose next place is too,
    and [N, count] whether each exists."""
    valid = supervised[:, :-1] & supervised[:, 1:]
    order = torch.rand(valid.shape, device=valid.device).masked_fill(~valid, 2.0)
    value, place = order.topk(count, 1, largest=False)
    place = place.masked_fill(value > 1.5, valid.shape[1]).sort(1).values
    return place.clamp(max=valid.shape[1] - 1), place < valid.shape[1]


def attention_mask(anchors: Tensor, exists: Tensor, block: int, context: int, dtype: torch.dtype) -> Tensor:
    """[N, 1, A*B, S+A*B]: a slot sees context strictly before its anchor and every slot of its own block; a missing block only
    itself. 0 where visible, -inf elsewhere."""
    count = anchors.shape[1]
    start = anchors.masked_fill(~exists, 0).repeat_interleave(block, 1)[:, :, None]
    before = torch.arange(context, device=anchors.device)[None, None] < start
    owner = torch.arange(count, device=anchors.device).repeat_interleave(block)
    same = (owner[:, None] == owner[None]).expand(anchors.shape[0], -1, -1)
    hidden = ~torch.cat([before, same], 2)
    return torch.zeros(hidden.shape, dtype=dtype, device=anchors.device).masked_fill_(hidden, float("-inf"))[:, None]


def pack(ids: Tensor, supervised: Tensor, anchors: Tensor, exists: Tensor, block: int, mask_id: int, dtype: torch.dtype) -> Blocks:
    """Blocks at ``anchors`` [N, A] of ``ids`` [N, S]. Slot k stands at anchor+k and should say the token there; scoring stops at
    the first slot that leaves the answer."""
    rows, length = ids.shape
    offset = torch.arange(block, device=ids.device)
    positions = anchors[:, :, None] + offset
    inside = positions < length
    place = positions.clamp(max=length - 1).view(rows, -1)
    labels = ids.gather(1, place).view(positions.shape)
    inputs = torch.where(offset == 0, labels, mask_id)
    wanted = inside & exists[:, :, None] & supervised.gather(1, place).view(positions.shape) & (labels != mask_id)
    wanted = wanted.long().cumprod(2).bool() & (offset > 0)
    mask = attention_mask(anchors, exists, block, length, dtype)
    flat = (rows, -1)
    return Blocks(positions.view(flat), inputs.view(flat), labels.view(flat), wanted.view(flat), mask, block)


def slot_losses(hidden: Tensor, head: Tensor, labels: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For rows [M, H] under ``head`` [K, H]: cross-entropy [M] to ``labels`` (indices in K), cross-entropy [M] to the
    ``teacher``'s distribution [M, K], and whether the likeliest is the label [M]."""
    scores = F.linear(hidden, head).float()
    logs = scores.log_softmax(-1)
    hard = -logs.gather(1, labels[:, None])[:, 0]
    soft = -(teacher.float() * logs).sum(-1)
    return hard, soft, scores.argmax(-1) == labels


def decay_weights(block: int, device: torch.device) -> Tensor:
    """exp(-(k-1)/gamma) [B]; slot 0 has no say."""
    offset = torch.arange(block, device=device)
    return torch.exp(-(offset - 1).float() / DECAY[block]) * (offset > 0)


def dpace_weights(hard: Tensor, wanted: Tensor) -> Tensor:
    """D-PACE [n, B]: how much a better slot would lengthen the accepted prefix, from the detached probabilities of the labels."""
    chance = (1 - DPACE_FLOOR) * torch.exp(-hard.detach()) + DPACE_FLOOR
    reached = chance.masked_fill(~wanted, 1.0).cumprod(1) * wanted
    return reached.flip(1).cumsum(1).flip(1) * wanted


def block_loss(
    blocks: Blocks, hidden: Tensor, head: Tensor, places: Tensor, teacher: Tensor, kind: str, distil: float,
    losses: Callable[..., tuple[Tensor, Tensor, Tensor]] = slot_losses,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The loss and the mean number of tokens a cycle commits over all blocks. ``places`` [V]: index in the head, or -1."""
    labels = places[blocks.labels].view(-1)
    hard, soft, hit = losses(hidden.reshape(-1, hidden.shape[-1]), head, labels.clamp(min=0), teacher)
    shape = (-1, blocks.block)
    wanted, known = blocks.wanted.view(shape), (labels >= 0).view(shape)
    hard = torch.where(known, hard.view(shape), torch.full_like(hard.view(shape), 30.0))  # not in the head: never accepted
    decay = decay_weights(blocks.block, hidden.device)[None] * wanted
    weights = dpace_weights(hard, wanted) if kind == "dpace" else decay
    each = (1 - distil) * hard * known + distil * soft.view(shape)
    loss = (weights * each).sum() / weights.sum().clamp(min=1e-6)
    right = (hit.view(shape) & wanted & known)[:, 1:].long().cumprod(1).sum(1)
    live = wanted.any(1)
    return loss, 1 + (right * live).sum() / live.sum().clamp(min=1)
