"""What the two loops share: their limits and the record of one step."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import mlx.core as mx

from engine.decoding.constraint import Guide
from engine.decoding.controller import Choice, FixedLength
from engine.decoding.sampling import NOT_A_NUMBER, Sampler
from engine.drafters.protocol import DraftSession, Foreseen, Recall
from engine.errors import ModelError
from engine.events import Source, TokenLogprob
from engine.targets.protocol import Cache, Target


def read_ids(ids: mx.array) -> list[int]:
    """Waits for the device and brings ``ids`` [L] to the host: the only place where a loop does."""
    return cast(list[int], ids.tolist())


@dataclass(frozen=True, slots=True)
class Step:
    """One cycle's outcome. ``tokens`` entered the answer; ``accepted`` of ``proposed`` came from ``source``.

    ``draft_s`` and ``verify_s`` are None except in a cycle that was timed part by part. ``plain``: a plain step, whose
    ``verify_s`` is always known; ``parked``: it was taken because speculation would have been slower. ``logprobs``: one a token
    where asked for, else empty.
    """

    tokens: tuple[int, ...]
    proposed: int
    accepted: int
    draft_s: float | None = None
    verify_s: float | None = None
    plain: bool = False
    parked: bool = False
    source: Source | None = None
    logprobs: tuple[TokenLogprob, ...] = ()


class Policy(Protocol):
    """Decides the block length cycle by cycle. ``block_length`` is 0 while ``parked``; ``reason`` is in words for the user."""

    @property
    def block_length(self) -> int:
        """Slots of the current block, anchor included; 0 while speculation is parked."""

    @property
    def reason(self) -> str:
        """Why this length, or why parked."""

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        """What to do next, where a lookup has ``ahead`` to propose. Called once a cycle or plain stretch."""

    def wakes(self, ahead: Sequence[Foreseen]) -> bool:
        """Whether a plain stretch should end early, because what is ``ahead`` pays."""

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        """What a cycle of ``choice`` brought and how many ``seconds`` it took."""

    def observe_plain(self, steps: int, seconds: float) -> None:
        """``steps`` plain steps took ``seconds`` (nan: not known)."""

    def observe_foreseen(self, outcomes: Sequence[tuple[Foreseen, bool]]) -> None:
        """Tokens that a lookup foresaw, proposed or not: what spoke for each, and whether it was right."""


@dataclass(slots=True)
class Decoding:
    """Everything a loop works on. ``position`` is that of the anchor, the answer's first token, not yet run.

    ``broken``: the target's logits were not numbers where the next token was to be chosen, so the loop ended before it.
    """

    target: Target
    cache: Cache
    sampler: Sampler
    stop_ids: frozenset[int]
    max_tokens: int
    cancel: threading.Event
    position: int
    anchor: mx.array  # [1]
    committed: list[int]
    anchor_logprobs: mx.array | None = None  # packed, where asked for
    session: DraftSession | None = None
    taps: tuple[int, ...] = ()
    tap_rows: mx.array | None = None  # [1, n*H], the row before the anchor
    recall: Recall | None = None
    policy: Policy = field(default_factory=lambda: FixedLength(1))
    broken: bool = False
    widths: tuple[int, ...] | None = None  # the only block lengths to use; None: any
    guide: Guide | None = None  # the form that the answer is held to

    def narrowed(self, width: int) -> int:
        """The widest block of at most ``width`` slots that may be used; 1, a plain step, may always."""
        return width if self.widths is None else max((allowed for allowed in self.widths if allowed <= width), default=1)

    def cut(self, tokens: list[int], produced: int) -> tuple[list[int], bool]:
        """``tokens`` within the limit, up to and with the first stop token or without what is no token; True: the answer ends."""
        tokens = tokens[: self.max_tokens - produced]
        for index, token in enumerate(tokens):
            if token == NOT_A_NUMBER:
                self.broken = True
                return tokens[:index], True
            if token in self.stop_ids:
                return tokens[: index + 1], True
        return tokens, produced + len(tokens) >= self.max_tokens

    def check_numbers(self) -> None:
        """Raises ``ModelError`` where the loop ended because it was ``broken``."""
        if self.broken:
            raise ModelError(
                "The model's output is not a number, so the answer ends here: try again, and if it happens again "
                "download the model anew or choose another; its files are damaged or quantised too coarsely."
            )
