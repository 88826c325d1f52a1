"""Targets whose every layer is attention over a plain key/value cache: llama, qwen2, qwen3 and all of mlx-lm's like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, QuantizedKVCache, make_prompt_cache

from engine.errors import ModelError
from engine.targets.protocol import Cache, TargetCapabilities, TargetOutput, TargetShape
from engine.targets.sparse_cache import sparse_like

FINAL_NORMS = ("norm", "norm_f", "embedding_norm", "final_layernorm")  # what mlx-lm's families call it

KV_GROUPS = (64, 32)  # values of a key or value row that share a scale; the larger takes less memory


class AttentionTarget:
    """Runs mlx-lm's own forward of one loaded model. Taps are read by standing in for a layer of this instance during a call."""

    def __init__(self, model: nn.Module, family: str, shape: TargetShape):
        self.family, self.shape = family, shape
        self.model = model
        self._body = find_body(model)
        self._lm_head = find_lm_head(model)
        self.capabilities = probe_capabilities(model, self._body)
        self._kv_quantisation: dict[str, int] | None = None

    @classmethod
    def handles(cls, model: nn.Module, family: str) -> bool:
        """Whether this adapter is the one for ``model``: here, every cache is plain key/value."""
        return all(type(entry) is KVCache for entry in make_prompt_cache(model))

    def kv_group(self, bits: int) -> int:
        """The values of a row that would share a scale with keys and values in ``bits``. Reads no weights.

        Raises ``ModelError`` where the shapes say already that the model cannot run on such a cache.
        """
        if type(self) is not AttentionTarget or not self.capabilities.rollback:
            raise ModelError(
                f"The cache of {self.family!r} models cannot be kept in {bits} bits, only that of plain attention models can: load "
                "it without kv_bits."
            )
        cache = make_prompt_cache(self.model)
        self.model(mx.zeros((1, 1), dtype=mx.int32), cache=cache)
        sizes = {array.shape[-1] for entry in cache for array in (entry.keys, entry.values)}
        group = next((group for group in KV_GROUPS if all(size % group == 0 for size in sizes)), None)
        if group is None:
            found = ", ".join(map(str, sorted(sizes)))
            raise ModelError(
                f"The cache of {self.family!r} models cannot be kept in {bits} bits: its heads of size {found} do not divide into "
                "groups of 32. Load it without kv_bits."
            )
        return group

    def quantise_cache(self, bits: int) -> None:
        """Keeps keys and values in ``bits`` from now on. Raises ``ModelError`` where the model cannot run on such a cache."""
        group = self.kv_group(bits)
        self._kv_quantisation = {"group_size": group, "bits": bits}
        try:
            mx.eval(self.forward(mx.array([0, 1]), self.make_cache()).logits)
        except (AttributeError, IndexError, TypeError, ValueError, RuntimeError) as error:  # it reads the cache itself
            raise ModelError(
                f"The cache of {self.family!r} models cannot be kept in {bits} bits: its attention reads it in its own way. Load "
                "it without kv_bits."
            ) from error

    def make_cache(self) -> Cache:
        cache = make_prompt_cache(self.model)
        return cache if self._kv_quantisation is None else [QuantizedKVCache(**self._kv_quantisation) for _ in cache]

    def make_sparse_cache(self) -> Cache:
        return sparse_like(self.make_cache())

    def skip_to(self, cache: Cache, position: int) -> None:
        for entry in cache:
            entry.skip_to(position)

    def forward(self, ids: mx.array, cache: Cache, taps: tuple[int, ...] = ()) -> TargetOutput:
        if not taps:
            return TargetOutput(self._logits(ids, cache), None)
        with recorded_layers(self._body.layers, taps) as streams:
            logits = self._logits(ids, cache)
        return TargetOutput(logits, mx.concatenate([self.residual(streams[tap])[0] for tap in taps], axis=-1))

    def embed(self, ids: mx.array) -> mx.array:
        return self._body.embed_tokens(ids)

    def head(self, hidden: mx.array) -> mx.array:
        logits = self._lm_head(hidden) if self._lm_head is not None else self._body.embed_tokens.as_linear(hidden)
        return logits[..., : self.shape.vocab_size]

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        source = self._lm_head or self._body.embed_tokens
        rows = {name: source[name][ids] for name in ("weight", "scales", "biases", "bias") if source.get(name) is not None}
        mx.eval(rows)

        def project(hidden: mx.array) -> mx.array:
            if "scales" in rows:
                logits = mx.quantized_matmul(
                    hidden, rows["weight"], rows["scales"], rows.get("biases"), True, source.group_size, source.bits, source.mode
                )
            else:
                logits = hidden @ rows["weight"].T
            return logits + rows["bias"] if "bias" in rows else logits

        return project

    def rollback(self, cache: Cache, rejected: int) -> None:
        if rejected:
            for entry in cache:
                entry.trim(rejected)

    def cache_arrays(self, cache: Cache) -> list[mx.array]:
        return [array for entry in cache for _, array in tree_flatten(entry.state) if isinstance(array, mx.array)]

    def layer(self, index: int) -> nn.Module:
        """One decoder layer of the model."""
        return self._body.layers[index]

    def streams(self, ids: mx.array, layers: tuple[int, ...]) -> list[mx.array]:
        """The residual streams [N, S, H] after ``layers`` of whole texts ``ids`` [N, S], without caches: for training a draft."""
        with recorded_layers(self._body.layers, layers) as streams:
            self.model(ids)
        return [self.residual(streams[layer]) for layer in layers]

    @staticmethod
    def residual(output: Any) -> mx.array:
        """The residual stream [N, L, H] in what a layer returned: here, all of it."""
        return output

    def final_norm(self, rows: mx.array) -> mx.array:
        """Rows of the last layer's stream as ``head`` takes them."""
        return next(self._body[name] for name in FINAL_NORMS if name in self._body)(rows)

    def visible(self, cache: Cache) -> list[mx.array]:
        return [array for entry in cache for array in visible_rows(entry)]

    def _logits(self, ids: mx.array, cache: Cache) -> mx.array:
        return self.model(ids[None], cache=cache)[0, :, : self.shape.vocab_size]


def visible_rows(entry: Any) -> list[mx.array]:
    """The rows of a plain or quantised key/value cache that count."""
    return [] if entry.empty() else [array for _, array in tree_flatten(entry.keys_and_values())]


class _RecordedLayer:
    """Stands in for one layer: same call, same attributes, and the output is kept."""

    def __init__(self, layer: nn.Module, index: int, streams: dict[int, mx.array]):
        self._layer, self._index, self._streams = layer, index, streams

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = self._layer(*args, **kwargs)
        self._streams[self._index] = output
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)


@contextmanager
def recorded_layers(layers: list, taps: tuple[int, ...]) -> Iterator[dict[int, mx.array]]:
    """For the duration of one forward, ``streams[tap]`` [1, L, H] is what each tapped layer returned."""
    originals = {tap: layers[tap] for tap in taps}
    streams: dict[int, mx.array] = {}
    try:
        for tap, layer in originals.items():
            layers[tap] = _RecordedLayer(layer, tap, streams)
        yield streams
    finally:
        for tap, layer in originals.items():
            layers[tap] = layer


def find_body(model: nn.Module) -> nn.Module:
    """The part of an mlx-lm model that holds embed_tokens and the layers, or the model itself where there is none."""
    for candidate in (model.get("model"), model.get("language_model"), model):
        if candidate is None:
            continue
        inner = candidate.get("model") or candidate
        if isinstance(inner.get("layers"), list) and inner.get("embed_tokens") is not None:
            return inner
    return model


def find_lm_head(model: nn.Module) -> nn.Module | None:
    """The output projection, which a family with several modalities keeps inside its language model; None where it is tied."""
    places = (model, model.get("language_model"))
    return next((place["lm_head"] for place in places if place is not None and place.get("lm_head") is not None), None)


def probe_capabilities(model: nn.Module, body: nn.Module) -> TargetCapabilities:
    """Taps need the usual body and layers that return one array; exact rollback needs plain caches.

    Runs one token through a scratch cache, so that a family whose layers return something else is found at load.
    """
    cache = make_prompt_cache(model)
    foreign = sorted({type(entry).__name__ for entry in cache if type(entry) is not KVCache})
    if foreign:
        return TargetCapabilities(False, False, f"its cache is not plain key/value ({', '.join(foreign)})")
    layers = body.get("layers")
    if not isinstance(layers, list) or body.get("embed_tokens") is None or not layers:
        return TargetCapabilities(False, True, "its layers are not laid out as embed_tokens and layers")
    last = len(layers) - 1
    with recorded_layers(layers, (last,)) as streams:
        model(mx.zeros((1, 1), dtype=mx.int32), cache=cache)
    if not isinstance(streams.get(last), mx.array):
        return TargetCapabilities(False, True, "its layers do not return one residual stream")
    return TargetCapabilities(True, True)
