"""Targets with recurrent layers beside attention: a pass of several tokens is recorded, so that any tail of it can be undone.

A recurrent layer keeps a few arrays (a convolution window, a state) instead of one row a token, so nothing can be trimmed.
Such a pass therefore keeps what went into the recurrence, after all projections; undoing rows goes back to the arrays from
before the pass and runs the recurrence alone over the rows that stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, make_prompt_cache

from engine.targets.attention import AttentionTarget, find_body, recorded_layers, visible_rows
from engine.targets.protocol import Cache, TargetCapabilities, TargetOutput, TargetShape

MAX_RECORDED = 128  # tokens; passes wider than any block are prefill, which is never undone and whose record would be large
PROBE = (0, 1, 2, 3, 4)  # token ids of the pass that checks at load that a replay gives what the model's own pass left

State = tuple["mx.array | None", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a watched module: what went in and what came out, [1, L, ...] each."""

    given: mx.array
    returned: mx.array


class Replay(ABC):
    """How the recurrent module ``layer[name]`` is recorded and replayed."""

    watched: ClassVar[tuple[str, ...]] = ()  # the submodules whose calls hold everything the recurrence reads

    def __init__(self, layer: nn.Module, name: str):
        self.layer, self.name = layer, name
        self.mixer: nn.Module = layer[name]

    def recorded(self) -> AbstractContextManager[Any]:
        """For the duration of one pass: what of it is kept, complete once the pass is built."""
        return recorded_calls(self.mixer, self.watched)

    @abstractmethod
    def state_after(self, kept: int, record: Any, before: State) -> Sequence[mx.array]:
        """The layer's cached arrays after the first ``kept`` >= 1 rows of the recorded pass, which began at ``before``."""


@dataclass(slots=True)
class _Recording:
    replay: Replay
    record: Any
    before: State
    rows: int  # of this pass in the cache

    def take_back(self, entry: ArraysCache, rejected: int) -> None:
        self.rows -= rejected
        after = self.replay.state_after(self.rows, self.record, self.before) if self.rows else self.before
        entry.cache = list(after)


class RecurrentTarget(AttentionTarget):
    """Runs a hybrid by mlx-lm's own forward. A subclass names the recurrent modules it knows and how each is replayed."""

    replays: ClassVar[dict[type[nn.Module], type[Replay]]]

    def __init__(self, model: nn.Module, family: str, shape: TargetShape):
        super().__init__(causal_model(model), family, shape)
        self._body = self.find_body()
        self._replays = [self.replays[type(layer[name])](layer, name) for layer, name in self.mixers(self.model)]
        self._recordings: WeakKeyDictionary[ArraysCache, _Recording] = WeakKeyDictionary()
        self.capabilities = TargetCapabilities(True, True)
        self.capabilities = self._probe()

    @classmethod
    def handles(cls, model: nn.Module, family: str) -> bool:
        """Whether every cache is plain key/value or belongs to a recurrent module this adapter knows."""
        entries = flat_entries(make_prompt_cache(model))
        recurrent = sum(type(entry) is ArraysCache for entry in entries)
        known = recurrent + sum(type(entry) is KVCache for entry in entries) == len(entries)
        return known and 0 < recurrent == len(cls.mixers(model))

    @classmethod
    def mixers(cls, model: nn.Module) -> list[tuple[nn.Module, str]]:
        """The places (layer, name) of the recurrent modules that this adapter knows, in the order of their caches."""
        return [(layer, name) for layer in model.layers for name, child in layer.children().items() if type(child) in cls.replays]

    def find_body(self) -> nn.Module:
        """The module that holds the decoder layers."""
        return find_body(self.model)

    def forward(self, ids: mx.array, cache: Cache, taps: tuple[int, ...] = ()) -> TargetOutput:
        entries = recurrent_entries(cache)
        for entry in entries:
            self._recordings.pop(entry, None)
        rows = ids.shape[0]
        if rows > MAX_RECORDED:
            return super().forward(ids, cache, taps)
        before = [tuple(entry.cache) for entry in entries]
        with ExitStack() as watches:
            records: list[Any] = [None] * len(entries)
            if rows > 1:  # of a single row nothing can stay
                records = [watches.enter_context(replay.recorded()) for replay in self._replays]
            output = super().forward(ids, cache, taps)
        for entry, replay, record, start in zip(entries, self._replays, records, before, strict=True):
            self._recordings[entry] = _Recording(replay, record, start, rows)
        return output

    def rollback(self, cache: Cache, rejected: int) -> None:
        """Exact for the rows of the last pass, up to ``MAX_RECORDED``. Raises ``RuntimeError`` for any others."""
        if not rejected:
            return
        entries = flat_entries(cache)
        recordings = [self._recordings.get(entry) for entry in entries if type(entry) is ArraysCache]
        if any(recording is None or recording.rows < rejected for recording in recordings):
            raise RuntimeError(f"{rejected} tokens cannot be taken back: the last pass was not recorded or had fewer.")
        for entry in entries:
            if type(entry) is ArraysCache:
                self._recordings[entry].take_back(entry, rejected)
            else:
                entry.trim(rejected)

    def visible(self, cache: Cache) -> list[mx.array]:
        found: list[mx.array | None] = []
        for entry in flat_entries(cache):
            found += entry.cache if type(entry) is ArraysCache else visible_rows(entry)
        return [array for array in found if array is not None]

    def _probe(self) -> TargetCapabilities:
        """Whether the layers give taps, and whether a replay of a whole pass gives the arrays that the pass itself left."""
        cache, last = self.make_cache(), len(self._body.layers) - 1
        self.forward(mx.array(PROBE), cache)
        with recorded_layers(self._body.layers, (last,)) as streams:
            self.forward(mx.array(PROBE), cache)
        for entry in recurrent_entries(cache):
            recording = self._recordings[entry]
            replayed = recording.replay.state_after(len(PROBE), recording.record, recording.before)
            if not all(mx.array_equal(ours, theirs).item() for ours, theirs in zip(replayed, entry.cache, strict=True)):
                return TargetCapabilities(False, False, f"its {type(recording.replay.mixer).__name__} runs in an unknown way")
        if not isinstance(streams.get(last), mx.array):
            return TargetCapabilities(False, True, "its layers do not return one residual stream")
        return TargetCapabilities(True, True)


def causal_model(model: nn.Module) -> nn.Module:
    """The language model itself: what a wrapper for several kinds of input holds, or ``model``."""
    return model.get("language_model") or model


def flat_entries(cache: Cache) -> list[Any]:
    """The cache's entries with those of ``CacheList`` in their place."""
    return [part for entry in cache for part in (entry.caches if isinstance(entry, CacheList) else (entry,))]


def recurrent_entries(cache: Cache) -> list[ArraysCache]:
    """The entries of the recurrent layers, in order."""
    return [entry for entry in flat_entries(cache) if type(entry) is ArraysCache]


def window_after(kept: int, conv_input: mx.array, kernel_size: int) -> mx.array:
    """The last kernel_size - 1 rows of a convolution's input once ``kept`` new rows went in.

    ``conv_input`` [1, kernel_size - 1 + L, C] begins with the window from before. Copied, so that it does not hold the whole
    input in memory.
    """
    return mx.contiguous(conv_input[:, kept : kept + kernel_size - 1])


class _Watched:
    """Stands in for one submodule: same call, same attributes, and the call is kept."""

    def __init__(self, module: nn.Module, name: str, calls: dict[str, Call]):
        self._module, self._name, self._calls = module, name, calls

    def __call__(self, given: mx.array) -> mx.array:
        returned = self._module(given)
        self._calls[self._name] = Call(given, returned)
        return returned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def recorded_calls(module: nn.Module, names: tuple[str, ...]) -> Iterator[dict[str, Call]]:
    """For the duration of one forward, ``calls[name]`` is the last call of that submodule of this instance."""
    originals = {name: module[name] for name in names}
    calls: dict[str, Call] = {}
    try:
        for name, original in originals.items():
            module[name] = _Watched(original, name, calls)
        yield calls
    finally:
        for name, original in originals.items():
            module[name] = original


@contextmanager
def stood_in(layer: nn.Module, name: str, call: Callable[..., mx.array]) -> Iterator[None]:
    """For the duration of one forward, ``call`` runs in place of the submodule ``layer[name]`` of this instance."""
    original = layer[name]
    layer[name] = call
    try:
        yield
    finally:
        layer[name] = original


def rebound(module: nn.Module, name: str, value: Any) -> Callable[..., mx.array]:
    """The module's own forward, bound to it, that finds ``value`` where its source says ``name``.

    mlx-lm's function and its file stay as they are. Raises ``RuntimeError`` where the forward does not use that name.
    """
    forward = type(module).__call__
    if name not in forward.__code__.co_names:
        raise RuntimeError(f"{type(module).__name__} no longer calls {name}.")
    names = {**forward.__globals__, name: value}
    return FunctionType(forward.__code__, names, name, forward.__defaults__, forward.__closure__).__get__(module)
