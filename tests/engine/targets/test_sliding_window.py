"""The sliding-window adapter against mlx-lm's own forward of each family: logits, taps, embedding, head, and exact rollback."""

from __future__ import annotations

import math

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models import gemma3_text
from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

from engine.targets import window_cache
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Cache, TargetShape
from engine.targets.registry import make_target
from engine.targets.sliding_window import SlidingWindowTarget
from engine.targets.window_cache import WindowCache
from tests.engine.targets.sliding_families import (
    FAMILIES,
    LAYERS,
    UNTAPPED,
    WINDOW,
    WRAPPED,
    sliding_config,
    sliding_model,
    sliding_target,
)
from tests.engine.tiny import VOCAB, build_target

EVERY = [*FAMILIES, *WRAPPED]
IDS = mx.array([(7 * index + 3 + index // 9) % VOCAB for index in range(90)])
BLOCK = mx.array([11, 22, 33, 44, 55, 66])


@pytest.fixture(scope="module", params=EVERY)
def target(request: pytest.FixtureRequest) -> SlidingWindowTarget:
    return sliding_target(request.param)


def close(ours: mx.array, reference: mx.array) -> bool:
    """Equal within fp32 rounding through six random layers."""
    return mx.abs(ours - reference).max().item() <= 2e-4 * mx.abs(reference).max().item()


def fill(target: SlidingWindowTarget, count: int, chunk: int = 64) -> Cache:
    """Caches that hold the first ``count`` ids, run in chunks."""
    cache = target.make_cache()
    for start in range(0, count, chunk):
        target.forward(IDS[start : min(start + chunk, count)], cache)
    return cache


def held(cache: Cache) -> list[mx.array]:
    """All rows that later tokens can see, layer by layer."""
    pairs = [entry.state[:2] if isinstance(entry, WindowCache) else entry.keys_and_values() for entry in cache]
    return [array for pair in pairs for array in pair]


def same(ours: Cache, reference: Cache, exactly: bool) -> bool:
    assert [entry.offset for entry in ours] == [entry.offset for entry in reference]
    pairs = list(zip(held(ours), held(reference), strict=True))
    return all(a.shape == b.shape and (mx.array_equal(a, b) if exactly else close(a, b)) for a, b in pairs)


def test_the_registry_chooses_this_adapter_and_gives_every_window_a_cache_that_rolls_back(target: SlidingWindowTarget) -> None:
    chosen = make_target(target.model, target.family, target.shape)
    assert type(chosen) is SlidingWindowTarget
    assert chosen.capabilities.taps and chosen.capabilities.rollback and chosen.capabilities.reason is None
    kinds = [(type(entry), getattr(entry, "window", None)) for entry in chosen.make_cache()]
    theirs = [RotatingKVCache if kind is WindowCache else kind for kind, _ in kinds]
    assert theirs == [type(entry) for entry in make_prompt_cache(target.model)]
    assert (WindowCache, WINDOW) in kinds and (KVCache, None) in kinds


@pytest.mark.parametrize("widths", [[1] * 24, [4] * 8, [40, 1, 1, 9, 1, 6, 6, 1, 1, 7], [64, 8, 1, 8, 9]])
def test_logits_are_those_of_mlx_lms_own_forward_through_every_wrap(target: SlidingWindowTarget, widths: list[int]) -> None:
    """Steps, chunks and blocks below, at and above the window of 6, on mlx-lm's rotating caches and on ours."""
    ours, theirs, start = target.make_cache(), make_prompt_cache(target.model), 0
    for width in widths:
        ids = IDS[start : start + width]
        start += width
        assert close(target.forward(ids, ours, (0, 2)).logits, target.model(ids[None], cache=theirs)[0])


def test_taps_are_the_residual_streams(target: SlidingWindowTarget) -> None:
    """A tap normed and projected gives the logits; a layer run by hand on a tap gives the next; nothing changes the logits."""
    cache, everything = fill(target, 20), tuple(range(LAYERS))
    plain = target.forward(BLOCK, fill(target, 20)).logits
    output = target.forward(BLOCK, cache, everything)
    assert output.taps is not None and output.taps.shape == (6, 32 * LAYERS)
    assert mx.array_equal(output.logits, plain)
    streams = mx.split(output.taps, LAYERS, axis=-1)
    assert mx.array_equal(target.forward(BLOCK, fill(target, 20), (1, 4)).taps, mx.concatenate([streams[1], streams[4]], axis=-1))
    drafted = target.head(target._body.norm(streams[-1][None])[0])
    assert mx.array_equal(mx.argmax(drafted, axis=-1), mx.argmax(plain, axis=-1))
    cap = getattr(text_arguments(target), "final_logit_softcapping", None)
    scale = getattr(text_arguments(target), "logit_scale", getattr(text_arguments(target), "output_multiplier", 1.0))
    assert close(drafted * scale if cap is None else cap * mx.tanh(drafted * scale / cap), plain)
    ids = mx.array([0, 3, 50, VOCAB - 1])
    assert close(target.partial_head(ids)(streams[-1]), target.head(streams[-1])[:, ids])


def test_training_reads_the_streams_that_taps_are(target: SlidingWindowTarget) -> None:
    """Of whole texts without caches; Gemma 4's layers return more than their stream."""
    layers = (0, LAYERS - 1)
    taps = target.forward(IDS, target.make_cache(), layers).taps
    streams = target.streams(mx.stack([IDS, IDS]), layers)
    assert taps is not None and [stream.shape for stream in streams] == [(2, len(IDS), 32)] * 2
    assert close(mx.concatenate([stream[1] for stream in streams], axis=-1), taps)


def text_arguments(target: SlidingWindowTarget) -> object:
    return (target.model.get("language_model") or target.model).args


def test_the_draft_gets_the_embedding_that_the_first_layer_gets(target: SlidingWindowTarget) -> None:
    """By each family's own definition, bit for bit."""
    raw, family = target._body.embed_tokens(BLOCK), target.family
    if family.startswith("gemma3"):
        wanted = raw * mx.array(math.sqrt(32), mx.bfloat16).astype(raw.dtype)
    elif family.startswith("gemma4") or family == "afmoe":
        wanted = raw * math.sqrt(32)
    elif family == "muse_glimmer":
        wanted = mx.fast.rms_norm(raw, None, target._body.embed_eps)
    else:
        wanted = raw
    layers = list(target._body.layers)
    assert mx.array_equal(target.embed(BLOCK), wanted)
    assert target._body.layers == layers, "the model is as it was"


def test_rollback_leaves_what_the_same_pass_over_the_kept_rows_leaves(target: SlidingWindowTarget) -> None:
    """Bit for bit, at every kept length: what the rejected rows held, and that they were run, cannot be seen any more."""
    for kept in range(7):
        check_rollback(target, prompt=20, kept=kept)


@pytest.mark.parametrize("name", ["gemma3_text", "gemma4_text with shared key/value layers"])
@pytest.mark.parametrize("prompt", [1, 5, 6, 64])
def test_rollback_is_exact_where_a_block_crosses_the_window(name: str, prompt: int) -> None:
    target = sliding_target(name)
    for kept in (0, 1, 3, 5):
        check_rollback(target, prompt, kept)


def check_rollback(target: SlidingWindowTarget, prompt: int, kept: int) -> None:
    rolled, other = fill(target, prompt), fill(target, prompt)
    target.forward(BLOCK, rolled)
    target.forward(mx.concatenate([BLOCK[:kept], 80 + BLOCK[kept:]]), other)
    for cache in (rolled, other):
        target.rollback(cache, 6 - kept)
    assert same(rolled, other, exactly=True)
    for width in (1, 6):
        following = IDS[30 : 30 + width]
        assert mx.array_equal(target.forward(following, rolled).logits, target.forward(following, other).logits)
        for cache in (rolled, other):
            target.rollback(cache, width)


@pytest.mark.parametrize("width", [1, 6, 9])
def test_after_rollback_the_next_pass_gives_the_logits_of_a_fresh_run(target: SlidingWindowTarget, width: int) -> None:
    for prompt, kept in ((5, 1), (6, 0), (20, 4)):
        rolled, fresh = fill(target, prompt), target.make_cache()
        target.forward(BLOCK, rolled)
        target.rollback(rolled, 6 - kept)
        target.forward(mx.concatenate([IDS[:prompt], BLOCK[:kept]]), fresh)
        assert same(rolled, fresh, exactly=False)
        following = IDS[40 : 40 + width]
        assert close(target.forward(following, rolled).logits, target.forward(following, fresh).logits)


def test_rolling_back_costs_no_copy_and_a_single_step_can_be_taken_back_too() -> None:
    target = sliding_target("gemma3_text")
    cache = fill(target, 20)
    before = [mx.array(array) for array in held(cache)]
    for count in (1, 1, 2, 9):
        target.forward(IDS[20 : 20 + count], cache)
        buffers = [id(entry.keys) for entry in cache]
        target.rollback(cache, count)
        assert [id(entry.keys) for entry in cache] == buffers
        assert all(mx.array_equal(ours, then) for ours, then in zip(held(cache), before, strict=True))


def test_a_full_buffer_is_moved_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that fill every few rows give the very logits of buffers that never do."""
    target = sliding_target("gemma4_text with shared key/value layers")
    roomy = fill(target, 20)
    monkeypatch.setattr(window_cache, "STEP", 4)
    tight = fill(target, 20)
    for cycle in range(12):
        logits = [target.forward(IDS[20 + cycle : 26 + cycle], cache).logits for cache in (roomy, tight)]
        assert mx.array_equal(*logits)
        for cache in (roomy, tight):
            target.rollback(cache, cycle % 6)
    assert same(roomy, tight, exactly=True)


def test_nothing_of_mlx_lm_is_patched_and_a_failure_leaves_the_model_whole() -> None:
    calls = gemma3_text.Gemma3Model.__call__, gemma3_text.TransformerBlock.__call__
    target = sliding_target("gemma3_text")
    layers = list(target._body.layers)
    target.embed(BLOCK)
    with pytest.raises(ValueError):
        target.forward(mx.zeros((1, 2, 3, 4), dtype=mx.int32), target.make_cache(), (1, 2))
    assert target._body.layers == layers
    assert calls == (gemma3_text.Gemma3Model.__call__, gemma3_text.TransformerBlock.__call__)


@pytest.mark.parametrize("name", UNTAPPED)
def test_a_family_without_one_residual_stream_rolls_back_and_says_why_it_has_no_taps(name: str) -> None:
    target = sliding_target(name)
    assert not target.capabilities.taps and target.capabilities.rollback
    assert target.capabilities.reason is not None and "layers" in target.capabilities.reason
    for kept in (0, 1, 4):
        check_rollback(target, prompt=20, kept=kept)
    rolled, fresh = fill(target, 20), target.make_cache()
    target.forward(BLOCK, rolled)
    target.rollback(rolled, 4)
    target.forward(mx.concatenate([IDS[:20], BLOCK[:2]]), fresh)
    assert same(rolled, fresh, exactly=False)


@pytest.mark.parametrize("name", ["plamo3", "gemma3n", "gpt_oss"])
def test_a_block_sees_what_single_steps_see(name: str) -> None:
    """PLaMo 3 asks for masks one wider than its rotating caches: mlx-lm's blocks and steps differ there, ours may not."""
    target = sliding_target(name)
    blocks, steps = fill(target, 20), fill(target, 20, chunk=1)
    block = target.forward(BLOCK, blocks).logits
    single = mx.concatenate([target.forward(BLOCK[row : row + 1], steps).logits for row in range(6)])
    assert close(block, single)


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize("name", ["gemma3", "gemma4"])
def test_quantised_targets_run_as_stored_and_roll_back_exactly(name: str, dtype: mx.Dtype) -> None:
    config = sliding_config(name)
    model = sliding_model(config)
    model.set_dtype(dtype)
    nn.quantize(
        model,
        group_size=32,
        bits=8,
        class_predicate=lambda path, part: hasattr(part, "to_quantized") and part.weight.shape[-1] % 32 == 0,
    )
    target = make_target(model, name, TargetShape(32, VOCAB, LAYERS, 2048))
    assert isinstance(target, SlidingWindowTarget) and isinstance(target._body.embed_tokens, nn.QuantizedEmbedding)
    for kept in (0, 1, 4):
        check_rollback(target, prompt=20, kept=kept)
    plain = target.forward(BLOCK, fill(target, 20)).logits
    taps = target.forward(BLOCK, fill(target, 20), (LAYERS - 1,)).taps
    assert taps is not None and taps.dtype == plain.dtype == target.embed(BLOCK).dtype == dtype
    drafted = target.head(target._body.norm(taps[None])[0])
    best = mx.argmax(drafted, axis=-1)[:, None]
    assert mx.array_equal(mx.take_along_axis(plain, best, axis=-1)[:, 0], plain.max(axis=-1)), "soft-capping may only tie, in bf16"
    ids = mx.array([0, 3, VOCAB - 1])
    assert mx.allclose(target.partial_head(ids)(taps), target.head(taps)[:, ids], atol=1e-5 if dtype == mx.float32 else 0.05)


def test_full_attention_configs_of_the_same_families_stay_with_the_plain_adapter() -> None:
    config = sliding_config("llama", layer_types=None)
    assert type(make_target(build_target(config), "llama", TargetShape(32, VOCAB, LAYERS, 2048))) is AttentionTarget
