"""Tiny random targets of every kind of cache, and a prompt's way through one: with a prefix cache or from the start."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
from mlx_lm.models.cache import QuantizedKVCache

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.protocol import Drafter
from engine.prefill.chunked import Prefilled, prefill
from engine.prefix.cache import PrefixCache
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Cache, Target, TargetShape
from tests.engine.targets.hybrids import RECURRENCES, hybrid
from tests.engine.targets.sliding_families import sliding_target
from tests.engine.tiny import BASE, VOCAB, build_target, target_config

GRID = 16
ROOT = "5a" * 32
ATTENTION = ["llama", "qwen3"]
SLIDING = ["gemma3_text", "gpt_oss", "gemma4_text with shared key/value layers"]
QUANTISED = "llama, 8-bit keys and values"
ROWS_ONLY = [*ATTENTION, *SLIDING, QUANTISED]
STATEFUL = RECURRENCES


class QuantisedTarget(AttentionTarget):
    """Keeps keys and values in 8 bits, in groups of 32."""

    def make_cache(self) -> Cache:
        return [QuantizedKVCache(group_size=32, bits=8) for _ in super().make_cache()]


def make(name: str) -> Target:
    """A target by the name of its case."""
    if name in STATEFUL:
        return hybrid(name)
    if name in SLIDING:
        return sliding_target(name)
    quantised = name == QUANTISED
    config = target_config("llama" if quantised else name, **({"head_dim": 32} if quantised else {}))
    kind = QuantisedTarget if quantised else AttentionTarget
    return kind(build_target(config), config["model_type"], TargetShape(BASE["hidden_size"], VOCAB, 4, 2048))


def prompt(length: int, seed: int = 0) -> list[int]:
    """Token ids that depend on the seed from the first on."""
    chosen = random.Random(seed)
    return [chosen.randrange(VOCAB) for _ in range(length)]


@dataclass
class Way:
    """What a prompt led to: ``cached`` tokens came out of the cache, ``source`` in its words; logits and tokens that followed."""

    cached: int
    source: str
    logits: mx.array
    tokens: list[int]
    passes: list[int]


class Counting:
    """A target that notes how many tokens each pass ran."""

    def __init__(self, target: Target):
        self._target, self.passes = target, []

    def forward(self, ids: mx.array, cache: Cache, taps: tuple[int, ...] = ()):
        self.passes.append(ids.shape[0])
        return self._target.forward(ids, cache, taps)

    def __getattr__(self, name: str):
        return getattr(self._target, name)


def run(
    target: Target,
    ids: Sequence[int],
    cache: PrefixCache | None = None,
    boundaries: Sequence[int] = (),
    drafter: Drafter | None = None,
    more: int = 8,
) -> Way:
    """Prefills ``ids`` and decodes ``more`` tokens greedily; with ``cache`` it begins after what is kept and keeps what it adds."""
    counting, held, never = Counting(target), target.make_cache(), threading.Event()
    session = drafter.session() if drafter is not None else None
    recording = None
    if cache is not None:
        recording = cache.begin(ids, held, session, lambda beyond: [place for place in boundaries if place > beyond], never)
    taps = drafter.taps if drafter is not None else ()
    *_, ready = prefill(counting, held, ids, session, taps, GRID, never, recording)
    assert isinstance(ready, Prefilled)
    if cache is not None and recording is not None:
        cache.end(recording)
    logits, tokens = ready.logits, []
    for _ in range(more):
        tokens.append(int(mx.argmax(logits[-1])))
        logits = target.forward(mx.array(tokens[-1:]), held).logits
    cached, source = (recording.tokens, recording.source) if recording is not None else (0, "")
    return Way(cached, source, ready.logits, tokens, counting.passes)


def open_cache(target: Target, drafter: DFlashDrafter | None = None, ram_bytes: int = 2**30, disk=None) -> PrefixCache:
    """A prefix cache over blocks of ``GRID`` tokens."""
    return PrefixCache(target, drafter, GRID, ROOT, ram_bytes, disk)
