"""Tiny configs of every sliding-window family that the engine speculates on: 6 layers, window 6, both kinds of layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map_with_path

from engine.targets.protocol import TargetShape
from engine.targets.sliding_window import SlidingWindowTarget
from tests.engine.tiny import VOCAB, build_target, target_config

WINDOW = 6
LAYERS = 6
SLIDING, FULL = "sliding_attention", "full_attention"
TYPES = [SLIDING, SLIDING, FULL, SLIDING, FULL, SLIDING]
ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
BASE = {"num_hidden_layers": LAYERS, "sliding_window": WINDOW}
GEMMA3 = {"sliding_window_pattern": 3, "query_pre_attn_scalar": 8}
GEMMA4 = {
    "global_head_dim": 16, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0, "layer_types": TYPES,
    "final_logit_softcapping": 3.0, "use_double_wide_mlp": False,
}  # fmt: skip
GEMMA4_SHARED = GEMMA4 | {
    "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCAB, "use_double_wide_mlp": True,
    "layer_types": [SLIDING, SLIDING, FULL, SLIDING, SLIDING, FULL],
}  # fmt: skip
GEMMA4_MOE = GEMMA4 | {
    "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 24,
    "attention_k_eq_v": True, "num_global_key_value_heads": 1,
}  # fmt: skip
MIMO = {
    "hybrid_layer_pattern": [1, 1, 0, 1, 0, 1], "moe_layer_freq": [0, 1, 1, 1, 1, 1], "sliding_window_size": WINDOW,
    "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False, "moe_intermediate_size": 24,
    "n_shared_experts": 1, "n_routed_experts": 4, "num_experts_per_tok": 2, "routed_scaling_factor": 1.0,
    "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "n_group": 1, "topk_group": 1,
    "layernorm_epsilon": 1e-5, "swa_rope_theta": 10000.0, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2,
    "v_head_dim": 8, "swa_head_dim": 8, "swa_v_head_dim": 8, "partial_rotary_factor": 1.0,
}  # fmt: skip
GEMMA3N = {
    "num_kv_shared_layers": 2, "vocab_size_per_layer_input": VOCAB, "rope_local_base_freq": 10000.0,
    "final_logit_softcapping": 30.0, "layer_types": [SLIDING, SLIDING, FULL, SLIDING, SLIDING, FULL],
    "activation_sparsity_pattern": [0.5, 0.5, 0, 0, 0, 0], "hidden_size_per_layer_input": 8, "altup_num_inputs": 2,
    "altup_coef_clip": 120.0, "altup_correct_scale": True, "altup_active_idx": 0, "laurel_rank": 8,
}  # fmt: skip

# name of the case: (family, what its config adds)
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3_text": ("gemma3_text", GEMMA3),
    "gemma4_text": ("gemma4_text", GEMMA4),
    "gemma4_text with shared key/value layers": ("gemma4_text", GEMMA4_SHARED),
    "gemma4_text with experts": ("gemma4_text", GEMMA4_MOE),
    "gpt_oss": ("gpt_oss", {"num_local_experts": 4, "num_experts_per_tok": 2, "rope_scaling": None, "layer_types": TYPES}),
    "cohere2": ("cohere2", {"sliding_window_pattern": 3, "layer_norm_eps": 1e-5, "logit_scale": 0.5}),
    "olmo3": ("olmo3", {"layer_types": TYPES, "tie_word_embeddings": False}),
    "exaone4": ("exaone4", {"sliding_window_pattern": "LLG", "rope_scaling": {"rope_type": "default"}}),
    "llama": ("llama", {"layer_types": TYPES}),
    "ministral3": ("ministral3", {"layer_types": TYPES, "rope_parameters": ROPE | {"llama_4_scaling_beta": 0.1,
                                  "original_max_position_embeddings": 16}}),
    "afmoe": ("afmoe", EXPERTS | {"layer_types": TYPES, "num_dense_layers": 1, "num_shared_experts": 1}),
    "laguna": ("laguna", EXPERTS | {"layer_types": TYPES, "rope_parameters": {SLIDING: ROPE, FULL: ROPE},
                                    "shared_expert_intermediate_size": 24}),
    "mellum": ("mellum", EXPERTS | {"layer_types": TYPES, "norm_topk_prob": True, "rope_parameters": {SLIDING: ROPE, FULL: ROPE}}),
    "muse_glimmer": ("muse_glimmer", {"layer_types": TYPES, "output_multiplier": 0.5}),
    "step3p5": ("step3p5", {"layer_types": TYPES, "num_attention_groups": 2, "moe_num_experts": 4, "moe_top_k": 2,
                            "moe_intermediate_size": 24, "share_expert_dim": 24, "rope_theta": [10000.0] * LAYERS,
                            "attention_other_setting": {"num_attention_heads": 4, "num_attention_groups": 2},
                            "partial_rotary_factors": [1.0] * LAYERS}),
    "mimo_v2_flash": ("mimo_v2_flash", MIMO),
    "exaone_moe": ("exaone_moe", EXPERTS | {"layer_types": TYPES, "num_shared_experts": 1, "is_moe_layer": [False, True] * 3}),
}  # fmt: skip
UNTAPPED = {  # nothing to tap: parts of layers run twice, streams side by side, other names; lookup drafting works on them
    "iquestloopcoder": ("iquestloopcoder", {"loop_num": 2, "loop_window_size": WINDOW}),
    "gemma3n": ("gemma3n", GEMMA3N),
    "spark2_5": ("spark2_5", {"layer_types": TYPES, "rope_parameters": {SLIDING: ROPE, FULL: ROPE}}),
    "plamo3": ("plamo3", {"sliding_window_pattern": 3}),
}
WRAPPED = {"gemma3": ("gemma3_text", GEMMA3), "gemma4": ("gemma4_text", GEMMA4_SHARED)}


def sliding_config(name: str, **changes: Any) -> dict[str, Any]:
    """The config.json of a case of ``FAMILIES``, of ``UNTAPPED``, or of a family that keeps it in ``text_config``."""
    if name in WRAPPED or name == "gemma3n":
        family, added = (WRAPPED | UNTAPPED)[name]
        text = target_config(family, **BASE | added | changes)
        return {"model_type": name, "vocab_size": text["vocab_size"], "eos_token_id": 2, "text_config": text}
    family, added = (FAMILIES | UNTAPPED)[name]
    return target_config(family, **BASE | added | changes)


def sliding_model(config: dict[str, Any]) -> nn.Module:
    """A random model whose attention is no sharper than a trained one's: Gemma 4 does not scale its scores, and a random
    layer_scalar near 0 leaves no residual stream, so that rounding alone would decide the text."""
    model = build_target(config)
    if config["model_type"].startswith("gemma4"):

        def calmer(path: str, value: mx.array) -> mx.array:
            if path.endswith("layer_scalar"):
                return mx.ones_like(value)
            return 0.35 * value if path.endswith("q_norm.weight") else value

        model.update(tree_map_with_path(calmer, model.parameters()))
        mx.eval(model.parameters())
    return model


def sliding_target(name: str, **changes: Any) -> SlidingWindowTarget:
    """The adapter of a random model of that config."""
    config = sliding_config(name, **changes)
    model = sliding_model(config)
    assert SlidingWindowTarget.handles(model, config["model_type"])
    return SlidingWindowTarget(model, config["model_type"], TargetShape(32, VOCAB, LAYERS, 2048))


def write_sliding_target(folder: Path, name: str, **changes: Any) -> Path:
    """Writes such a model as a checkpoint without a tokenizer."""
    config = sliding_config(name, **changes)
    folder.mkdir(parents=True)
    weights = dict(tree_flatten(sliding_model(config).parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
