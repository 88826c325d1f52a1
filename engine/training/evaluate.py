"""Tokens per cycle of greedy decoding on held-out answers, replayed: the answer is fixed, so the cycles follow from what the
draft proposes at every place of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.training.blocks import pack, packed_rows
from engine.training.corpus import Text
from engine.training.teacher import Teacher

TOKENS = 200  # of each answer: where users are
ANCHORS = 32  # places looked at in one pass


def replayed_tau(
    drafter: DFlashDrafter,
    teacher: Teacher,
    texts: Sequence[Text],
    block_length: int,
    check: Callable[[], None] = lambda: None,
) -> float:
    """Mean tokens per cycle over the answers of ``texts`` at blocks of ``block_length`` slots, the anchor among them. ``check``
    is called between passes and may raise."""
    taus = [_replay(drafter, teacher, text, block_length, check) for text in texts if text.answer_tokens > 1]
    return float(np.mean(taus)) if taus else 1.0


def _replay(drafter: DFlashDrafter, teacher: Teacher, text: Text, block_length: int, check: Callable[[], None]) -> float:
    ids, answer = np.asarray(text.ids, dtype=np.int32)[None], np.asarray(text.answer)[None]
    start = int(np.flatnonzero(answer[0])[0])
    end = min(start + TOKENS, start + int(np.argmin(np.append(answer[0, start:], False))))
    places = np.arange(start, end - 1)
    features = drafter.model.features(teacher.run(mx.array(ids))[0])
    accepted: list[int] = []
    mx.eval(features)
    for first in range(0, len(places), ANCHORS):
        check()
        anchors = places[None, first : first + ANCHORS]
        accepted += _accepted(drafter, features, ids, answer, anchors, block_length)
    return walk(accepted)


def _accepted(
    drafter: DFlashDrafter, features: mx.array, ids: np.ndarray, answer: np.ndarray, anchors: np.ndarray, block_length: int
) -> list[int]:
    """How many proposals a block at each of ``anchors`` [1, A] would get accepted."""
    first = drafter.model.convention.first_slot
    slots = block_length - 1 + first
    blocks = pack(ids, answer, anchors, np.ones_like(anchors, dtype=bool), slots, drafter.model.convention)
    inputs = drafter.embed(blocks.inputs.reshape(1, -1))
    rows = packed_rows(drafter.model, inputs, features, blocks).reshape(anchors.shape[1], slots, -1)[:, first:]
    chosen = mx.argmax(drafter.project(rows), axis=-1)
    if drafter.vocabulary is not None:
        chosen = drafter.vocabulary[chosen]
    right = (chosen == blocks.labels[0, :, first:]) & blocks.scored[0, :, first:]
    return mx.cumprod(right.astype(mx.int32), axis=-1).sum(-1).tolist()  # type: ignore[return-value]


def walk(accepted: Sequence[int]) -> float:
    """Tokens per cycle of the decode that begins at the first place, when a cycle at place i accepts ``accepted[i]``."""
    place = cycles = 0
    while place < len(accepted):
        place += accepted[place] + 1
        cycles += 1
    return min(place, len(accepted)) / cycles if cycles else 1.0
