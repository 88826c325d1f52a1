"""A target for tests that is a table: the logits at a position depend on the token before it and on the position, nothing else.

Its exact distribution is known, and a pass costs microseconds, so thousands of draws can be counted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Sequence
from types import SimpleNamespace

import mlx.core as mx
import numpy as np

from engine.decoding.controller import Choice, FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.steps import Decoding, Step
from engine.drafters.protocol import Foreseen
from engine.events import Mode
from engine.targets.protocol import TargetOutput

VOCAB = 16
PERIOD = 3
PROMPT = [5, 2, 9]  # as long as a period, so that the answer starts one
PROMPT_LOGITS_SEED = 11


def table(seed: int = PROMPT_LOGITS_SEED) -> np.ndarray:
    """Logits [PERIOD, V, V] for the next token by its position's phase and the token before. Phase 0 looks at no token before."""
    logits = np.random.default_rng(seed).normal(0, 1.8, (PERIOD, VOCAB, VOCAB)).astype(np.float32)
    logits[0] = logits[0, 0]
    return logits


class TableTarget:
    """``broken_at``: from this absolute position on, the logits that choose a token are ``broken_as``."""

    def __init__(self, logits: np.ndarray, broken_at: int | None = None, broken_as: Sequence[float] = (math.nan,)):
        self.logits, self._table = logits, mx.array(logits)
        self._broken_at, self._broken_as = broken_at, mx.array(list(broken_as))

    def make_cache(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(offset=0)]

    def forward(self, ids: mx.array, cache: list[SimpleNamespace], taps: tuple[int, ...] = ()) -> TargetOutput:
        chosen = mx.arange(ids.shape[0]) + cache[0].offset + 1
        cache[0].offset += ids.shape[0]
        logits = self._table[chosen % PERIOD, ids]
        if self._broken_at is not None:
            logits = mx.where((chosen >= self._broken_at)[:, None], self._broken_as, logits)
        return TargetOutput(logits, None)

    def rollback(self, cache: list[SimpleNamespace], rejected: int) -> None:
        cache[0].offset -= rejected


class TableDrafter:
    """Proposes the likeliest token and now and then another: right and wrong often, and blind to the noise."""

    mode: Mode = "dflash"
    taps = ()

    def __init__(self, logits: np.ndarray, block_length: int = 4):
        self._order, self.block_length, self._turn = np.argsort(-logits, axis=-1), block_length, 0

    def session(self) -> TableDrafter:
        return self

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        self._turn += 1
        last, proposals = committed[-1], []
        for place in range(position + 1, position + 1 + length):
            last = int(self._order[place % PERIOD, last, int(self._turn % 4 == 0)])
            proposals.append(last)
        return mx.array(proposals, dtype=mx.int32) if proposals else None


class SamplingDrafter(TableDrafter):
    """Proposes by ``draw``, which the test takes from the sampler of the answer."""

    def __init__(self, logits: np.ndarray, block_length: int = 4):
        super().__init__(logits, block_length)
        self._logits, self.draw = mx.array(logits), None

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        proposals = [anchor]
        for place in range(position + 1, position + 1 + length):
            proposals.append(self.draw(self._logits[place % PERIOD, proposals[-1]], place).astype(anchor.dtype))
        return mx.concatenate(proposals[1:]) if length else None


class Script(FixedLength):
    """Follows a list of choices again and again."""

    def __init__(self, *choices: Choice):
        super().__init__(4)
        self._choices, self._turn = choices, 0

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        self._turn += 1
        return self._choices[(self._turn - 1) % len(self._choices)]


def decoding(target: TableTarget, sampler: Sampler, max_tokens: int, drafter: object | None = None, **changes: object) -> Decoding:
    """A loop's state right after prefill of ``PROMPT``."""
    cache = target.make_cache()
    logits = target.forward(mx.array(PROMPT), cache).logits[-1:]
    anchor = sampler.pick(logits, len(PROMPT))
    settings = {
        "target": target, "cache": cache, "sampler": sampler, "stop_ids": frozenset(), "max_tokens": max_tokens,
        "cancel": threading.Event(), "position": len(PROMPT), "anchor": anchor, "committed": list(PROMPT),
        "anchor_logprobs": sampler.score(logits, anchor), "session": drafter.session() if drafter else None,
        "policy": FixedLength(4 if drafter else 1),
    }  # fmt: skip
    return Decoding(**settings | changes)


def tokens(steps: Generator[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]
