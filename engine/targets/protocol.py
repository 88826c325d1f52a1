"""What the loops need of a target, whatever its family. L new tokens, H hidden size, V vocabulary, n taps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import mlx.core as mx

Cache = list[Any]


@dataclass(frozen=True, slots=True)
class TargetShape:
    """The sizes a draft must agree with."""

    hidden_size: int
    vocab_size: int
    num_layers: int
    context_length: int


@dataclass(frozen=True, slots=True)
class TargetCapabilities:
    """What this target can do. Without ``rollback`` a partly accepted block cannot be undone, so nothing is proposed."""

    taps: bool
    rollback: bool
    reason: str | None = None


@dataclass(slots=True)
class TargetOutput:
    """``logits`` [L, V]; ``taps`` [L, n*H], the residual streams after the tapped layers side by side, None without taps."""

    logits: mx.array
    taps: mx.array | None


class Target(Protocol):
    """A target model. All arrays are lazy; nothing here waits for the device."""

    family: str
    shape: TargetShape
    capabilities: TargetCapabilities

    def make_cache(self) -> Cache:
        """Empty caches for one sequence."""

    def make_sparse_cache(self) -> Cache:
        """Empty caches for a prompt read in part, see ``skip_to``. Raises ``RequestError`` where the family cannot."""

    def skip_to(self, cache: Cache, position: int) -> None:
        """The next token of a sparse cache stands at ``position``; those between are not there."""

    def forward(self, ids: mx.array, cache: Cache, taps: tuple[int, ...] = ()) -> TargetOutput:
        """Runs ``ids`` [L] after what the cache holds. ``taps`` are 0-based decoder layers, ascending."""

    def embed(self, ids: mx.array) -> mx.array:
        """Embeddings [L, H] as the first layer sees them."""

    def head(self, hidden: mx.array) -> mx.array:
        """Logits [L, V] of final-normed rows [L, H]."""

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        """The head cut down to the vocabulary rows ``ids`` [K]: a function from rows [L, H] to logits [L, K]."""

    def layer(self, index: int) -> Any:
        """One decoder layer of the model, 0-based."""

    def rollback(self, cache: Cache, rejected: int) -> None:
        """Takes the last ``rejected`` tokens out of the cache, exactly."""

    def cache_arrays(self, cache: Cache) -> list[mx.array]:
        """The arrays to evaluate so that the cache is up to date."""

    def visible(self, cache: Cache) -> list[mx.array]:
        """What later tokens depend on: rows as far as they count, states whole. Equal where two caches hold the same."""
