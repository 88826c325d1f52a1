"""Fits a chat into the model's context: refused with the numbers, or without its oldest turns, by the caller's choice."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import ContextOverflow
from engine.prefill.selection import Run
from engine.request import GenerationRequest, Message

RESERVED_SHARE = 4  # an answer's room counts for at most one part in so many of the context when turns are dropped


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits: ``ids`` of ``messages``, the request's less the oldest ``dropped``, which took ``dropped_tokens``.

    Of ``ids`` only the stretches ``runs`` are read; None: all.
    """

    messages: tuple[Message, ...]
    ids: list[int]
    dropped: int = 0
    dropped_tokens: int = 0
    runs: tuple[Run, ...] | None = None


def fit_context(request: GenerationRequest, encode: Callable[[Sequence[Message]], list[int]], context_length: int) -> Fitted:
    """The prompt of ``request`` with room for at least one more token; raises ``ContextOverflow`` where there is none.

    Every count comes from rendering the chat. Where turns may be dropped, as few go as leave room for ``max_tokens``, or for a
    part of the context where that is less; system messages and the last user turn always stay.
    """
    ids = encode(request.messages)
    reserve = max(1, min(request.max_tokens, context_length // RESERVED_SHARE))
    if request.overflow == "drop_oldest" and len(ids) + reserve > context_length:
        choices = _shortened(request.messages)
        fewest = bisect.bisect_left(choices, True, key=lambda kept: len(encode(kept)) + reserve <= context_length)
        kept = choices[min(fewest, len(choices) - 1)]
        left = encode(kept)
        fitted = Fitted(kept, left, len(request.messages) - len(kept), len(ids) - len(left))
    else:
        fitted = Fitted(request.messages, ids)
    if len(fitted.ids) >= context_length:
        raise ContextOverflow(len(fitted.ids), context_length)
    return fitted


def _shortened(messages: tuple[Message, ...]) -> list[tuple[Message, ...]]:
    """``messages`` without none, one, two ... of their oldest turns. A turn is a user message and what follows it."""
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    cuts = [0, *starts]  # what comes before the first user message, a greeting perhaps, goes first
    return [
        tuple(message for index, message in enumerate(messages) if index >= cut or message.role == "system")
        for cut in dict.fromkeys(cuts)
    ]
