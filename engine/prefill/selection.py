"""Which tokens of a prompt are read when only a share of them is: what always stays, and the best of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.request import Message
from engine.text.places import content_places

SPAN = 32  # tokens chosen or left out together
SINKS = 16  # first tokens, which attention leans on whatever they say
RECENT = 128  # last tokens
TURN = 256  # a last user turn up to so long stays whole, a longer one at both ends

Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as scorers see it. ``content`` [P] is False where the chat template put the token, ``turn`` [P] is True in the
    last user turn."""

    ids: Sequence[int]
    content: np.ndarray
    turn: np.ndarray


def describe(tokenizer: Any, messages: Sequence[Message], ids: Sequence[int], thinking: bool | None = None) -> Prompt:
    """The prompt ``ids`` of ``messages``, rendered with ``thinking``.

    Raises ``RequestError`` where the tokenizer cannot tell what is the template's.
    """
    content, turn = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    for index, (start, stop) in enumerate(content_places(tokenizer, messages, ids, thinking)):
        content[start:stop] = True
        turn[start:stop] = index == last
    return Prompt(ids, content, turn)


def always_kept(prompt: Prompt) -> np.ndarray:
    """[P], True for the beginning, the end, the template's own tokens and the last user turn (of a long one, both its ends)."""
    kept = ~prompt.content
    kept[:SINKS] = True
    kept[max(0, len(kept) - RECENT) :] = True
    turn = np.flatnonzero(prompt.turn)
    if len(turn) > TURN:
        turn = np.concatenate([turn[: TURN // 2], turn[-TURN // 2 :]])
    kept[turn] = True
    return kept


def spans(tokens: int) -> list[Run]:
    """The spans of a prompt of ``tokens``, in order; the last may be shorter."""
    return [(start, min(start + SPAN, tokens)) for start in range(0, tokens, SPAN)]


def choose(prompt: Prompt, scores: np.ndarray, keep: float) -> np.ndarray:
    """[P], True for the tokens to read: what always stays, then whole spans by ``scores`` [spans] up to the share ``keep``."""
    kept = always_kept(prompt)
    left = round(keep * len(kept)) - int(kept.sum())
    places = spans(len(kept))
    for index in np.argsort(-scores, kind="stable"):
        start, stop = places[index]
        fresh = stop - start - int(kept[start:stop].sum())
        if fresh <= left:
            kept[start:stop] = True
            left -= fresh
    return kept


def runs_of(kept: np.ndarray) -> list[Run]:
    """The stretches [start, stop) of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
