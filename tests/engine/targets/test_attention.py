"""The target adapter: taps are the residual streams, nothing of mlx-lm is patched, rollback leaves the caches exact."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.models import llama

from engine.targets.attention import AttentionTarget, recorded_layers
from engine.targets.loading import load_target
from engine.targets.protocol import TargetShape
from tests.engine.tiny import VOCAB, build_target, target_config, write_target

DENSE = [
    "llama",
    "qwen2",
    "qwen3",
    "mimo",
    "olmo2",
    "granite",
    "starcoder2",
    "seed_oss",
    "smollm3",
    "helium",
    "stablelm",
    "qwen3_moe",
]
EXTRA = {
    "granite": {"logits_scaling": 2.0, "attention_multiplier": 0.3, "embedding_multiplier": 3.0, "residual_multiplier": 0.5,
                "attention_bias": False, "mlp_bias": False},
    "starcoder2": {"norm_epsilon": 1e-5, "hidden_act": "gelu"},
    "seed_oss": {"attention_bias": True, "attention_out_bias": False, "mlp_bias": False},
    "stablelm": {"layer_norm_eps": 1e-5, "use_qkv_bias": True, "partial_rotary_factor": 1.0},
    "helium": {"attention_bias": False, "mlp_bias": False},
    "mimo": {"num_nextn_predict_layers": 0},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [],
                  "moe_intermediate_size": 32, "norm_topk_prob": True},
}  # fmt: skip
IDS = [7, 3, 19, 42, 99, 5, 120, 61, 8, 77, 31]


def make_target(family: str = "llama") -> AttentionTarget:
    config = target_config(family, **EXTRA.get(family, {}))
    return AttentionTarget(build_target(config), family, TargetShape(32, VOCAB, 4, 2048))


@pytest.fixture(scope="module")
def llama_target() -> AttentionTarget:
    return make_target()


@pytest.mark.parametrize("family", DENSE)
def test_every_dense_family_gives_taps_and_can_roll_back(family: str) -> None:
    target = make_target(family)
    assert target.capabilities.taps and target.capabilities.rollback, target.capabilities.reason
    output = target.forward(mx.array(IDS), target.make_cache(), (0, 2))
    plain = target.forward(mx.array(IDS), target.make_cache())
    assert output.taps is not None and output.taps.shape == (len(IDS), 64)
    assert mx.array_equal(output.logits, plain.logits), "recording must not change the forward"


def test_taps_are_the_residual_stream_after_the_tapped_layer(llama_target: AttentionTarget) -> None:
    model = llama_target.model
    hidden = model.model.embed_tokens(mx.array([IDS]))
    streams = []
    for layer in model.model.layers:
        hidden = layer(hidden, "causal", None)
        streams.append(hidden[0])
    taps = llama_target.forward(mx.array(IDS), llama_target.make_cache(), (0, 1, 3)).taps
    assert mx.allclose(taps, mx.concatenate([streams[0], streams[1], streams[3]], axis=-1), atol=1e-5)


def test_taps_do_not_patch_mlx_lm_and_are_gone_after_a_failure(llama_target: AttentionTarget) -> None:
    layers = llama_target.model.model.layers
    before, call = list(layers), llama.TransformerBlock.__call__
    with pytest.raises(RuntimeError, match="boom"), recorded_layers(layers, (1, 2)):
        assert layers[1] is not before[1]
        raise RuntimeError("boom")
    assert all(now is then for now, then in zip(layers, before, strict=True))
    assert llama.TransformerBlock.__call__ is call


def test_a_family_with_other_caches_says_why_it_cannot_speculate(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "lfm2", "mamba", state_size=8, conv_kernel=4, use_bias=False, use_conv_bias=True,
                          time_step_rank=4, intermediate_size=64, expand=2)  # fmt: skip
    target = load_target(folder, mx.float32)
    assert not target.capabilities.rollback
    assert target.capabilities.reason is not None and "cache" in target.capabilities.reason


def test_a_family_laid_out_otherwise_still_runs_and_says_why_there_are_no_taps() -> None:
    target = make_target_of("gpt2", n_embd=32, n_head=4, n_layer=4, n_positions=64, layer_norm_epsilon=1e-5, n_ctx=64)
    assert target.capabilities.rollback and not target.capabilities.taps
    assert target.capabilities.reason is not None and "embed_tokens" in target.capabilities.reason


def make_target_of(family: str, **changes: object) -> AttentionTarget:
    return AttentionTarget(build_target(target_config(family, **changes)), family, TargetShape(32, VOCAB, 4, 64))


@pytest.mark.parametrize("prompt_length", [1, 5, 254, 255, 256, 257])
@pytest.mark.parametrize("kept", range(6))
def test_rollback_leaves_the_caches_of_the_same_pass_over_the_kept_rows(
    llama_target: AttentionTarget, prompt_length: int, kept: int
) -> None:
    """Bit for bit, also where the verified block crosses the place where the cache buffer grows (256 rows)."""
    prompt = mx.array([(7 * i + 3) % VOCAB for i in range(prompt_length)])
    block, following = mx.array([11, 22, 33, 44, 55, 66]), mx.array([9, 8])
    rolled, fresh = llama_target.make_cache(), llama_target.make_cache()
    for cache in (rolled, fresh):
        llama_target.forward(prompt, cache)
    llama_target.forward(block, rolled)
    llama_target.rollback(rolled, 6 - kept)
    if kept:
        llama_target.forward(block, fresh)  # the same width, so the same kernels; then only the kept rows count
    for ours, reference in zip(rolled, fresh, strict=True):
        end = prompt_length + kept
        assert ours.offset == end
        if kept:
            assert mx.array_equal(ours.keys[..., :end, :], reference.keys[..., :end, :])
            assert mx.array_equal(ours.values[..., :end, :], reference.values[..., :end, :])
    llama_target.rollback(fresh, 6 - kept if kept else 0)
    after = llama_target.forward(following, rolled).logits
    assert mx.array_equal(after, llama_target.forward(following, fresh).logits)


def test_partial_head_is_the_full_head_at_those_rows(llama_target: AttentionTarget) -> None:
    ids = mx.array([0, 3, 50, VOCAB - 1])
    hidden = mx.random.normal((3, 32), key=mx.random.key(4))
    assert mx.allclose(llama_target.partial_head(ids)(hidden), llama_target.head(hidden)[:, ids], atol=1e-5)


def test_a_padded_head_is_trimmed_to_the_vocabulary() -> None:
    model = build_target(target_config("llama"))
    target = AttentionTarget(model, "llama", TargetShape(32, VOCAB - 7, 4, 2048))
    assert target.forward(mx.array(IDS), target.make_cache()).logits.shape == (len(IDS), VOCAB - 7)
    assert target.head(mx.zeros((2, 32))).shape == (2, VOCAB - 7)
