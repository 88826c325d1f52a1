"""The two training loops: the target on packed rows of text, then its draft on what the target itself wrote."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from blocks import block_loss, choose_anchors, pack, slot_losses
from draft import LAYER_PARTS, Draft
from hybrid import PREFIX, Hybrid, Sizes, Weights
from muon import Muon
from target import Shape
from texts import MASK
from torch import Tensor

RATE_TARGET, RATE_DRAFT = 3e-3, 2e-3
WARM_UP, FADE = 50, 0.4  # steps; the last part of the time in which the rate falls to zero
CHECK_EVERY = 20  # steps between looks at the clock, which make the GPU's queue run dry
REPORT_S, SAVE_S = 10.0, 40.0
TAPS, BLOCK, DEPTH = (1, 4, 6), 8, 2
SLOTS = 256  # block slots in a row

Say = Callable[[str], None]
Step = Callable[[float], Tensor]


def run(name: str, deadline: float, say: Say, step: Step, report: Callable[[], str], save: Callable[[], None]) -> None:
    """Steps until ``deadline`` (a reading of the monotonic clock), at least one. ``step`` takes the part of the full rate and
    gives its loss. Raises ``FloatingPointError`` where a loss is not finite; what was saved before stays."""
    begun = now = reported = saved = time.monotonic()
    count, pause = 0, REPORT_S
    while count == 0 or now < deadline:
        left = (deadline - now) / max(deadline - begun, 1e-6)
        loss = step(max(0.0, min(1.0, (count + 1) / WARM_UP, left / FADE)))
        count += 1
        if count % CHECK_EVERY == 1:
            value = loss.item()  # waits for the device
            if value != value or value in (float("inf"), float("-inf")):
                raise FloatingPointError(f"{name}: the loss of step {count} is {value}")
        now = time.monotonic()
        if count == 1:
            say(f"{name}: step 1 took {now - begun:.0f} s, loss {loss.item():.4f}")
        if now - reported > pause:
            say(f"{name}: step {count} {now - begun:.0f} s loss {loss.item():.4f} {report()}")
            reported = time.monotonic()
            pause = max(REPORT_S, 10 * (reported - now))  # measuring takes a tenth of the time at most
        if now - saved > SAVE_S:
            save()
            saved = time.monotonic()
    save()
    say(f"{name}: {count} steps in {time.monotonic() - begun:.0f} s, {report()}")


def text_loss(final: Tensor, embedding: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of rows [N, L, H] to the next tokens [N, L]."""
    logits = F.linear(final, embedding.to(final.dtype)).float()
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def learn_target(
    weights: Weights, sizes: Sizes, rows: Tensor, held: Tensor, batch: int, deadline: float, say: Say, save: Callable[[], None]
) -> None:  # fmt: skip
    """Trains ``weights`` in place on ``rows`` [n, L+1]; ``held`` rows only measure."""
    on_gpu = rows.is_cuda
    for value in weights.values():
        value.requires_grad_()
    table = {PREFIX + "embed_tokens.weight": weights[PREFIX + "embed_tokens.weight"]}
    rest = {name: value for name, value in weights.items() if name not in table}
    optimisers = [Muon(table, matrices=False), Muon(rest, matrices=True)]
    model = Hybrid(weights, sizes, torch.bfloat16 if on_gpu else torch.float32, compiled=on_gpu)
    measured = torch.compile(text_loss, dynamic=False) if on_gpu else text_loss
    order, place = torch.randperm(len(rows)), 0

    def step(factor: float) -> Tensor:
        nonlocal order, place
        if place + batch > len(rows):
            order, place = torch.randperm(len(rows)), 0
        chosen = rows[order[place : place + batch].to(rows.device)].long()
        place += batch
        loss = measured(model(chosen[:, :-1])[0], model.embedding, chosen[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0, foreach=True)
        for optimiser in optimisers:
            optimiser.step(RATE_TARGET * factor)
        return loss.detach()

    @torch.no_grad()
    def report() -> str:
        plain = Hybrid(weights, sizes, model.dtype)
        losses = [text_loss(plain(part[:, :-1].long())[0], plain.embedding, part[:, 1:].long()) for part in held.split(batch)]
        return f"held-out loss {torch.stack(losses).mean().item():.4f}"

    run("target", deadline, say, step, report, save)
    for value in weights.values():
        value.requires_grad_(False)


def new_draft(shape: Shape, norm: Tensor) -> dict[str, Tensor]:
    """fp32 parameters of an untrained draft; its last norm begins as the target's, whose head it borrows."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    matrices = {
        "q_proj": (queries, shape.hidden), "k_proj": (keys, shape.hidden), "v_proj": (keys, shape.hidden),
        "o_proj": (shape.hidden, queries), "gate_proj": (shape.inner, shape.hidden), "up_proj": (shape.inner, shape.hidden),
        "down_proj": (shape.hidden, shape.inner), "q_norm": (shape.head_dim,), "k_norm": (shape.head_dim,),
    }  # fmt: skip
    shapes = {"fc.weight": (shape.hidden, len(TAPS) * shape.hidden), "hidden_norm.weight": (shape.hidden,)}
    for layer in range(DEPTH):
        shapes |= {f"layers.{layer}.{part}.weight": matrices.get(part.split(".")[-1], (shape.hidden,)) for part in LAYER_PARTS}
    device = norm.device
    made = {
        name: torch.randn(size, device=device) * 0.02 if len(size) == 2 else torch.ones(size, device=device)
        for name, size in shapes.items()
    }
    return made | {"norm.weight": norm.detach().clone()}


def learn_draft(
    parameters: dict[str, Tensor], target: Weights, sizes: Sizes, ids: Tensor, supervised: Tensor, batch: int, deadline: float,
    say: Say, save: Callable[[], None], report: Callable[[], str],
) -> None:  # fmt: skip
    """Trains ``parameters`` in place on answers ``ids`` [n, L] of the target, in the places ``supervised`` [n, L]."""
    on_gpu = ids.is_cuda
    for value in parameters.values():
        value.requires_grad_()
    optimiser = Muon(parameters, matrices=True)
    dtype = torch.bfloat16 if on_gpu else torch.float32
    model = Hybrid({name: value.to(dtype) if value.dim() == 2 else value for name, value in target.items()}, sizes, dtype, on_gpu)
    draft = Draft(parameters, sizes.draft_shape(), compiled=on_gpu)
    losses = torch.compile(slot_losses, dynamic=False) if on_gpu else slot_losses
    head = model.embedding.to(dtype)
    places = torch.arange(sizes.vocabulary, device=ids.device)

    def step(factor: float) -> Tensor:
        chosen = torch.randint(len(ids), (batch,), device=ids.device)
        rows = ids[chosen].long()
        anchors, exists = choose_anchors(supervised[chosen], SLOTS // BLOCK)
        blocks = pack(rows, supervised[chosen], anchors, exists, BLOCK, MASK, dtype)
        with torch.no_grad():
            final, taps = model(rows, TAPS)
            before = (blocks.positions - 1).clamp(0, rows.shape[1] - 1)
            said = final.gather(1, before[:, :, None].expand(-1, -1, final.shape[2])).flatten(0, 1)
            teacher = F.linear(said, head).float().softmax(-1)
            inputs = F.embedding(blocks.inputs, head)
        hidden = draft(inputs, taps, blocks.positions, blocks.mask)
        loss, _ = block_loss(blocks, hidden, head, places, teacher, "dpace", 0.5, losses)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(parameters.values()), 1.0, foreach=True)
        optimiser.step(RATE_DRAFT * factor)
        return loss.detach()

    run("draft", deadline, say, step, report, save)
