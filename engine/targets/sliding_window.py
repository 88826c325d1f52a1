"""Targets with sliding-window layers: Gemma 3 and 4, gpt-oss, Cohere 2, OLMo 3, EXAONE 4 and all of mlx-lm's like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

from engine.targets.attention import AttentionTarget, recorded_layers, visible_rows
from engine.targets.protocol import Cache, TargetCapabilities, TargetShape
from engine.targets.window_cache import WindowCache


class SlidingWindowTarget(AttentionTarget):
    """Runs mlx-lm's own forward on caches that can take tokens back at any length, see ``WindowCache``."""

    def __init__(self, model: nn.Module, family: str, shape: TargetShape):
        super().__init__(model, family, shape)
        self.capabilities, self._embed = self._probe()

    @classmethod
    def handles(cls, model: nn.Module, family: str) -> bool:
        caches = make_prompt_cache(model)
        windows = [entry for entry in caches if type(entry) is RotatingKVCache]
        others = [entry for entry in caches if type(entry) is not RotatingKVCache]
        return bool(windows) and all(entry.keep == 0 for entry in windows) and all(type(entry) is KVCache for entry in others)

    def make_cache(self) -> Cache:
        return [WindowCache(entry.max_size) if type(entry) is RotatingKVCache else entry for entry in make_prompt_cache(self.model)]

    def embed(self, ids: mx.array) -> mx.array:
        return self._embed(ids)

    def cache_arrays(self, cache: Cache) -> list[mx.array]:
        return [array for entry in cache for array in (entry.keys, entry.values) if array is not None]

    def visible(self, cache: Cache) -> list[mx.array]:
        found: list[mx.array | None] = []
        for entry in cache:
            found += entry.state[:2] if isinstance(entry, WindowCache) else visible_rows(entry)
        return [array for array in found if array is not None]

    @staticmethod
    def residual(output: Any) -> Any:
        """Gemma 4's layers hand their keys and values on beside the stream."""
        return output[0] if isinstance(output, tuple) else output

    def _probe(self) -> tuple[TargetCapabilities, Callable[[mx.array], mx.array]]:
        """Runs two tokens, so that a family whose layers return something else, or that scales its embedding, is found at load."""
        body, ids = self._body, mx.array([0, 1])
        layers, embedding = body.get("layers"), body.get("embed_tokens")
        if not isinstance(layers, list) or embedding is None or not layers:
            return TargetCapabilities(False, True, "its layers are not laid out as embed_tokens and layers"), super().embed
        with recorded_layers(layers, tuple(range(len(layers)))) as streams:
            self.model(ids[None], cache=self.make_cache())
        expected = (1, 2, self.shape.hidden_size)
        outputs = [self.residual(streams.get(index)) for index in range(len(layers))]
        if not all(isinstance(output, mx.array) and output.shape == expected for output in outputs):
            return TargetCapabilities(False, True, "its layers do not return one residual stream"), super().embed
        raw = super().embed
        scaled = not mx.array_equal(self._first_input(ids), raw(ids)).item()
        return TargetCapabilities(True, True), self._first_input if scaled else raw

    def _first_input(self, ids: mx.array) -> mx.array:
        """What the first layer is given for ``ids`` [L]: the embedding, scaled or normed as the family does it, [L, H]."""
        layers = self._body.layers
        first = layers[0]
        layers[0] = _FirstLayer(first)
        try:
            self._body(ids[None])
        except _ReachedError as reached:
            return reached.rows[0]
        finally:
            layers[0] = first
        raise RuntimeError(f"The first layer of {self.family} was never called.")


class _ReachedError(Exception):
    """Carries what the first layer was given out of a forward that need not go on."""

    def __init__(self, rows: mx.array):
        super().__init__()
        self.rows = rows


class _FirstLayer:
    """Stands in for the first layer and ends the forward there."""

    def __init__(self, layer: nn.Module):
        self._layer = layer

    def __call__(self, rows: mx.array, *args: Any, **kwargs: Any) -> Any:
        raise _ReachedError(rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)
