"""Tokens per cycle of real greedy decoding, replayed: the target's answer is fixed, so a draft's whole run follows from what it
would propose at every place of it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from blocks import attention_mask
from draft import Draft
from selfplay import STOP, ChatWriter, Scripts, read_suite, render
from target import Shape, Target, TargetWeights
from tokenizers import Tokenizer
from torch import Tensor

TOKENS = 200  # of each answer
PLAIN_MS = 43.0  # measured with the engine: fp32, 2 cores
VERIFY_MS = {1: 43.0, 4: 60.0, 6: 65.0, 8: 66.0, 16: 72.0}


@dataclass(frozen=True, slots=True)
class Answer:
    """``ids`` [L]: the whole chat with its last answer; ``start``: where that answer begins."""

    name: str
    ids: Tensor
    start: int


def verify_ms(width: int) -> float:
    """The measured cost of a verify pass, between measured widths by straight lines."""
    low = max(w for w in VERIFY_MS if w <= width)
    high = min(w for w in VERIFY_MS if w >= width)
    part = (width - low) / max(1, high - low)
    return VERIFY_MS[low] + part * (VERIFY_MS[high] - VERIFY_MS[low])


def draft_ms(depth: int, width: int, vocabulary: int) -> float:
    """The draft pass on the same machine: 16, 19, 20 ms at 4, 8, 16 slots for 4 layers and 49,152 head rows."""
    head = {4: 8.0, 6: 9.0, 8: 9.9, 12: 10.4, 16: 10.9}[width]
    layer = {4: 1.6, 6: 1.75, 8: 1.9, 12: 1.9, 16: 1.9}[width]
    return 1.5 + depth * layer + head * vocabulary / 49152


def speedup(tau: float, depth: int, width: int, vocabulary: int) -> float:
    return tau * PLAIN_MS / (verify_ms(width) + draft_ms(depth, width, vocabulary))


def suite_answers(weights: TargetWeights, shape: Shape, tokenizer: Tokenizer, path: Path) -> list[Answer]:
    """The target's own greedy answers to the suite, in the type of ``weights``."""
    suite, device = read_suite(path), weights.norm.device
    prompts = [tokenizer.encode(render(messages), add_special_tokens=False).ids for _, messages in suite]
    width = max(len(ids) for ids in prompts)
    ids = torch.zeros(len(prompts), 2, width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, 0, : len(prompt)] = torch.tensor(prompt)
    lengths = torch.tensor([[len(prompt), 0] for prompt in prompts])
    scripts = Scripts(ids.to(device), lengths.to(device), torch.ones(len(prompts), 1, dtype=torch.long, device=device))
    writer = ChatWriter(weights, shape, len(prompts), width + TOKENS + 17, scripts, limit=TOKENS + 17)
    written = writer.write(scripts)[0]
    answers = []
    for (name, _), prompt, row in zip(suite, prompts, written, strict=True):
        stops = (row[len(prompt) :] == STOP).nonzero()
        end = len(prompt) + (int(stops[0]) + 1 if len(stops) else TOKENS + 17)
        answers.append(Answer(name, row[:end], len(prompt)))
    return answers


def heldout_answers(ids: Tensor, offsets: Tensor) -> list[Answer]:
    """The first answer of each chat row that reaches 24 tokens."""
    answers = []
    for number, (row, offset) in enumerate(zip(ids.long(), offsets.long(), strict=True)):
        inside = (offset > 0).nonzero()[:, 0]
        start = int(inside[0])
        length = int((offset[start:] == torch.arange(1, len(row) - start + 1, device=row.device)).long().cumprod(0).sum())
        if length >= 24:
            answers.append(Answer(f"chat-{number}", row[: start + length], start))
    return answers


@torch.no_grad()
def proposals(
    draft: Draft, weights: TargetWeights, taps: Tensor, answer: Answer, block: int, mask_id: int
) -> tuple[Tensor, Tensor]:
    """Draft rows [A, B-1, H] at every possible anchor of the answer, and what they should say [A, B-1] (-1: past its end)."""
    ids, device = answer.ids[None], answer.ids.device
    last = min(len(answer.ids), answer.start + TOKENS + 1) - 1
    anchors = torch.arange(answer.start, last, device=device)[None]
    positions = anchors[0, :, None] + torch.arange(block, device=device)
    inputs = torch.full(positions.shape, mask_id, device=device)
    inputs[:, 0] = ids[0, anchors[0]]
    mask = attention_mask(anchors, torch.ones_like(anchors, dtype=torch.bool), block, ids.shape[1], taps.dtype)
    rows = draft(F.embedding(inputs.view(1, -1), weights.embedding), taps, positions.view(1, -1), mask)
    labels = ids[0, positions.clamp(max=ids.shape[1] - 1)].masked_fill(positions >= ids.shape[1], -1)
    return rows.view(len(positions), block, -1)[:, 1:], labels[:, 1:]


def walk(right: Tensor) -> float:
    """Tokens per cycle of the decode that begins at the first anchor; ``right`` [A, B-1]: proposal equals the answer."""
    accepted = right.long().cumprod(1).sum(1).tolist()
    place = cycles = 0
    while place < len(accepted):
        place += accepted[place] + 1
        cycles += 1
    return min(place, len(accepted)) / max(1, cycles)


def replay(
    draft: Draft, weights: TargetWeights, target: Target, answers: list[Answer], taps: tuple[int, ...], mask_id: int,
    blocks: list[int], heads: dict[int, Tensor],
) -> dict[tuple[int, int], dict[str, float]]:  # fmt: skip
    """Tokens per cycle by (block, head size) and answer. ``heads``: the target ids [K] that the draft may choose from."""
    found: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for answer in answers:
        if len(answer.ids) - answer.start < 2:
            continue
        with torch.no_grad():
            features = target(answer.ids[None], taps)[1]
            for block in blocks:
                rows, labels = proposals(draft, weights, features, answer, block, mask_id)
                for size, ids in heads.items():
                    chosen = ids[F.linear(rows, weights.embedding[ids]).argmax(-1)]
                    found[block, size][answer.name] = walk(chosen == labels)
    return found


def summary(taus: dict[str, float], depth: int, block: int, size: int) -> dict[str, object]:
    """Median and mean tokens per cycle and modelled speed-up, over all answers and by kind (the name before its first dash)."""
    gains = {name: speedup(tau, depth, block, size) for name, tau in taus.items()}
    kinds: dict[str, list[float]] = defaultdict(list)
    for name, tau in taus.items():
        kinds[name.split("-")[0]].append(tau)
    return {
        "tau_median": round(statistics.median(taus.values()), 3),
        "tau_mean": round(statistics.fmean(taus.values()), 3),
        "speedup_median": round(statistics.median(gains.values()), 3),
        "speedup_mean": round(statistics.fmean(gains.values()), 3),
        "kinds": {kind: round(statistics.fmean(values), 2) for kind, values in kinds.items()},
    }
