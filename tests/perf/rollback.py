"""Benchmark: what undoing a partly accepted block costs, as a share of the verify pass that ran it.

    python -m tests.perf.rollback [BLOCK] [CASE ...]

Layers of real sizes with random weights in fp32, few of them and next to no vocabulary: a whole model verifies at the same cost a
layer and adds its head, so its share is smaller. Each figure is the shortest of several; passes and undoing take turns.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import _get_classes

from engine.kernels.blas import use_fast_blas
from engine.targets.protocol import Cache, Target, TargetShape
from engine.targets.registry import make_target

VOCAB = 1024
CONTEXT = 128
ROUNDS = 4
ROPE = {"type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25}
QWEN = {
    "model_type": "qwen3_5", "num_hidden_layers": 4, "full_attention_interval": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_conv_kernel_dim": 4, "head_dim": 256,
    "rope_parameters": ROPE,
}  # fmt: skip
MAMBA = {
    "mamba_proj_bias": False, "ssm_state_size": 128, "conv_kernel": 4, "n_groups": 8, "mlp_bias": False, "use_bias": False,
    "layer_norm_epsilon": 1e-5, "use_conv_bias": True, "attention_bias": False, "tie_word_embeddings": False,
    "hybrid_override_pattern": ["M", "-", "M", "*", "-"], "num_hidden_layers": 5,
}  # fmt: skip


def sizes(hidden: int, inner: int, heads: int, kv_heads: int) -> dict[str, Any]:
    """The sizes every family names alike."""
    return {"hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads, "num_key_value_heads": kv_heads}


CASES: dict[str, dict[str, Any]] = {  # sizes after the published models of that name
    "qwen3.5 0.8B (Hv 16)": QWEN | sizes(1024, 3584, 8, 2) | {"linear_num_value_heads": 16},
    "qwen3.5 2B (Hv 16)": QWEN | sizes(2048, 6144, 8, 2) | {"linear_num_value_heads": 16},
    "qwen3.5 4B (Hv 32)": QWEN | sizes(2560, 9216, 16, 4) | {"linear_num_value_heads": 32},
    "lfm2 1.2B": {"model_type": "lfm2", "num_hidden_layers": 4, "conv_bias": False, "conv_L_cache": 3, "norm_eps": 1e-5,
                  "block_dim": 2048, "block_ff_dim": 12288, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
                  "block_auto_adjust_ff_dim": True, "full_attn_idxs": [2], **sizes(2048, 12288, 32, 8)},
    "nemotron-h 4B": MAMBA | sizes(3072, 12288, 32, 8) | {"model_type": "nemotron_h", "mamba_num_heads": 112, "head_dim": 128,
                                                          "mamba_head_dim": 64},
}  # fmt: skip


def main(block: int, names: list[str]) -> None:
    """Prints one JSON object a case: the verify pass in ms and the share that undoing takes, by accepted length."""
    for name in names:
        facts = {"case": name, "device": str(mx.default_device()), "fast_blas": use_fast_blas(), "block": block}
        print(json.dumps(facts | measure(target_of(CASES[name]), block)), flush=True)


def target_of(changes: dict[str, Any]) -> Target:
    """A random target of these sizes."""
    mx.random.seed(0)
    config = {"rms_norm_eps": 1e-6, "vocab_size": VOCAB, "max_position_embeddings": 4096, "tie_word_embeddings": True,
              "rope_theta": 1e6} | changes  # fmt: skip
    model_class, args_class = _get_classes(config)
    model: nn.Module = model_class(args_class.from_dict(config))
    model.set_dtype(mx.float32)
    model.eval()
    mx.eval(model.parameters())
    shape = TargetShape(config["hidden_size"], VOCAB, config["num_hidden_layers"], 4096)
    target = make_target(model, config["model_type"], shape)
    assert target.capabilities.rollback, target.capabilities.reason
    return target


def measure(target: Target, block: int) -> dict[str, Any]:
    """Seconds of a verify pass of ``block`` slots, and of undoing it after each number of accepted proposals."""
    cache = target.make_cache()
    ids = mx.arange(block) % VOCAB
    mx.eval(target.forward(mx.arange(CONTEXT), cache).logits, target.cache_arrays(cache))
    verify: list[float] = []
    undo: dict[int, list[float]] = {accepted: [] for accepted in range(0, block - 1, 2)}
    for _ in range(ROUNDS):
        for accepted, times in undo.items():
            verify.append(timed(lambda: [target.forward(ids, cache).logits], target, cache))
            times.append(timed(lambda accepted=accepted: target.rollback(cache, block - 1 - accepted), target, cache))
            target.rollback(cache, accepted + 1)
            mx.eval(target.cache_arrays(cache))
    pass_s = min(verify)
    shares = {accepted: min(times) / pass_s for accepted, times in undo.items()}
    mean = sum(shares.values()) / len(shares)
    return {"verify_ms": 1000 * pass_s, "undo_share_mean": mean, "undo_share_worst": max(shares.values()),
            "undo_share": {accepted: round(share, 4) for accepted, share in shares.items()}}  # fmt: skip


def timed(work: Any, target: Target, cache: Cache) -> float:
    """Seconds until ``work``'s arrays and the caches are up to date."""
    start = time.perf_counter()
    mx.eval(work() or [], target.cache_arrays(cache))
    return time.perf_counter() - start


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16, sys.argv[2:] or list(CASES))
