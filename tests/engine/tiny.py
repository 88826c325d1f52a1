"""Tiny random checkpoints: a target of a given family, a draft for it, both small enough to run hundreds of cycles in a test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

VOCAB = 160
BASE = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCAB,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "eos_token_id": 2,
}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def target_config(family: str = "llama", **changes: Any) -> dict[str, Any]:
    """A config.json for ``family``; ``changes`` of None remove a key."""
    config = {"model_type": family, **BASE, **changes}
    return {key: value for key, value in config.items() if value is not None}


def build_target(config: dict[str, Any], seed: int = 0) -> nn.Module:
    """mlx-lm's own model of ``config`` with random weights large enough to give decided logits."""
    mx.random.seed(seed)
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    shaken = [(name, _random_like(name, value)) for name, value in tree_flatten(model.parameters())]
    model.load_weights(shaken)
    mx.eval(model.parameters())
    return model


def write_target(folder: Path, family: str = "llama", seed: int = 0, **changes: Any) -> Path:
    """Writes a random target of ``family`` to ``folder`` (without a tokenizer) and returns the folder."""
    config = target_config(family, **changes)
    model = build_target(config, seed)
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())), {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def draft_config(target: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A z-lab DFlash v1 config.json for a draft of ``target``."""
    config = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": target["hidden_size"],
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 40,
        "vocab_size": target["vocab_size"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 2048,
        "block_size": 6,
        "num_target_layers": target["num_hidden_layers"],
        "dflash_config": {"target_layer_ids": [0, 2], "mask_token_id": 5},
        **changes,
    }
    return {key: value for key, value in config.items() if value is not None}


def draft_weights(config: dict[str, Any], seed: int = 1) -> dict[str, mx.array]:
    """Random tensors of every name a draft of ``config`` needs."""
    mx.random.seed(seed)
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    taps = len(config["dflash_config"]["target_layer_ids"])
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, taps * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        attention, mlp = f"layers.{layer}.self_attn.", f"layers.{layer}.mlp."
        shapes |= {
            attention + "q_proj.weight": (queries, hidden),
            attention + "k_proj.weight": (keys, hidden),
            attention + "v_proj.weight": (keys, hidden),
            attention + "o_proj.weight": (hidden, queries),
            attention + "q_norm.weight": (size,),
            attention + "k_norm.weight": (size,),
            mlp + "gate_proj.weight": (inner, hidden),
            mlp + "up_proj.weight": (inner, hidden),
            mlp + "down_proj.weight": (hidden, inner),
            f"layers.{layer}.input_layernorm.weight": (hidden,),
            f"layers.{layer}.post_attention_layernorm.weight": (hidden,),
        }
    return {name: _random_like(name, mx.zeros(shape)) for name, shape in shapes.items()}


def write_draft(folder: Path, target: dict[str, Any], seed: int = 1, **changes: Any) -> Path:
    """Writes a random draft for ``target`` (a config from ``target_config``) and returns the folder."""
    config = draft_config(target, **changes)
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), draft_weights(config, seed), {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def copy_tokenizer(source: Path, folder: Path) -> Path:
    """Gives ``folder`` the starter's tokenizer. Its ids pass a tiny vocabulary, so give such a target vocab_size 49152."""
    for name in TOKENIZER_FILES:
        shutil.copy(source / name, folder / name)
    return folder


def _random_like(name: str, value: mx.array) -> mx.array:
    if value.ndim == 1:
        return 1.0 + 0.1 * mx.random.normal(value.shape) if "norm" in name or "ln" in name else 0.1 * mx.random.normal(value.shape)
    return mx.random.normal(value.shape) * (1.6 / value.shape[-1] ** 0.5)
