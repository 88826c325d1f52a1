"""Tiny random targets of every recurrent hybrid family, with the adapter that runs each."""

from __future__ import annotations

from typing import Any

from engine.targets.gated_delta import GatedDeltaTarget
from engine.targets.mamba2 import Mamba2Target
from engine.targets.protocol import TargetShape
from engine.targets.recurrent import RecurrentTarget
from engine.targets.short_conv import ShortConvTarget
from tests.engine.tiny import VOCAB, build_target, target_config

GATED_DELTA = {
    "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 12,
    "linear_conv_kernel_dim": 4, "full_attention_interval": 2, "partial_rotary_factor": 0.5,
    "rope_parameters": {"type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "moe_intermediate_size": 24,
           "shared_expert_intermediate_size": 24, "norm_topk_prob": True, "mlp_only_layers": []}  # fmt: skip
SHORT_CONV = {"conv_bias": False, "conv_L_cache": 3, "norm_eps": 1e-5, "block_dim": 32, "block_ff_dim": 48,
              "block_multiple_of": 8, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": False,
              "full_attn_idxs": [1, 3]}  # fmt: skip
MAMBA = {"mamba_num_heads": 4, "mamba_head_dim": 8, "mamba_proj_bias": False, "ssm_state_size": 16, "conv_kernel": 4,
         "n_groups": 2, "mlp_bias": False, "layer_norm_epsilon": 1e-5, "use_bias": False, "use_conv_bias": True,
         "attention_bias": False, "tie_word_embeddings": False, "num_hidden_layers": 6,
         "hybrid_override_pattern": ["M", "*", "M", "-", "*", "M"]}  # fmt: skip
GRANITE = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_proj_bias": False, "mamba_d_state": 16, "mamba_d_conv": 4,
           "mamba_n_groups": 1, "mamba_expand": 1, "mamba_conv_bias": True, "attention_bias": False, "embedding_multiplier": 0.7,
           "attention_multiplier": 0.3, "logits_scaling": 0.5, "residual_multiplier": 0.9, "shared_intermediate_size": 40,
           "layer_types": ["mamba", "attention", "mamba", "attention"]}  # fmt: skip
FALCON = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_ssm": 32, "mamba_d_state": 16, "mamba_n_groups": 1,
          "mamba_rms_norm": True}  # fmt: skip

HYBRIDS: dict[str, tuple[type[RecurrentTarget], str, dict[str, Any]]] = {
    "qwen3_5": (GatedDeltaTarget, "qwen3_5", GATED_DELTA),
    "qwen3_5 untied": (GatedDeltaTarget, "qwen3_5", GATED_DELTA | {"tie_word_embeddings": False}),
    "qwen3_5 equal heads": (GatedDeltaTarget, "qwen3_5", GATED_DELTA | {"linear_num_key_heads": 4}),
    "qwen3_5_moe": (GatedDeltaTarget, "qwen3_5_moe", GATED_DELTA | EXPERTS),
    "qwen3_next": (GatedDeltaTarget, "qwen3_next", GATED_DELTA | EXPERTS),
    "lfm2": (ShortConvTarget, "lfm2", SHORT_CONV),
    "lfm2_moe": (ShortConvTarget, "lfm2_moe", SHORT_CONV | EXPERTS | {"use_expert_bias": True, "num_dense_layers": 1}),
    "nemotron_h": (Mamba2Target, "nemotron_h", MAMBA),
    "falcon_h1": (Mamba2Target, "falcon_h1", FALCON),
    "granitemoehybrid": (Mamba2Target, "granitemoehybrid", GRANITE),
    "granitemoehybrid experts": (Mamba2Target, "granitemoehybrid", GRANITE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
}

RECURRENCES = ["qwen3_5", "qwen3_next", "lfm2", "nemotron_h", "falcon_h1", "granitemoehybrid"]  # one for each kind of layer
REPLAYS = ["qwen3_5", "lfm2", "nemotron_h"]  # one for each adapter


def hybrid(name: str, seed: int = 0) -> RecurrentTarget:
    """A random target of one of ``HYBRIDS``, float32."""
    adapter, family, changes = HYBRIDS[name]
    config = target_config(family, **changes)
    return adapter(build_target(config, seed), family, TargetShape(32, VOCAB, config["num_hidden_layers"], 2048))
