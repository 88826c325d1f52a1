"""What a pair takes in memory, from its config and the headers of its weights: layer by layer, without loading anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.models.checkpoint import ITEM_BITS, Config, tensor_items, weight_files
from engine.models.store_types import MemoryNeed

CACHE_ITEM = 2  # bytes of a bf16 value
STATE_ITEM = 4  # recurrent states are kept in fp32
GROWTH = 256  # mlx-lm's caches grow in steps of so many tokens
# What a mark in a family's own list of layers stands for.
PATTERNS: dict[str, dict[str | int, str]] = {
    "hybrid_override_pattern": {"M": "mamba", "*": "full"},
    "sliding_window_pattern": {"L": "window", "G": "full"},
    "hybrid_layer_pattern": {1: "window", 0: "full"},
}


def memory_need(target: Path, draft: Path | None, expanded: bool = False, kv_bits: int | None = None) -> MemoryNeed:
    """Of the models in these folders. ``expanded``: every weight and cache value is fp32, as on the CPU. Raises ``ModelError``."""
    try:
        return _need(target, draft, expanded, kv_bits)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        what = f"What {target} needs of memory cannot be told from its config.json ({type(error).__name__}: {error})"
        raise ModelError(f"{what}: download it again, or choose another conversion.") from error


def _need(target: Path, draft: Path | None, expanded: bool, kv_bits: int | None) -> MemoryNeed:
    folders = [target] + ([draft] if draft is not None else [])
    configs = [Config.read(folder).values for folder in folders]
    weights = sum(weights_bytes(folder, config, expanded) for folder, config in zip(folders, configs, strict=True))
    caches = [cache_need(config) for config in configs]
    factor = 2.0 if expanded else 1.0
    quantised = factor if kv_bits is None else (kv_bits + 1) / 16  # a scale and a bias for each group of 64 beside
    longest = text_config(configs[0]).get("max_position_embeddings") or 0
    per_token = round(caches[0][0] * quantised) + sum(round(each * factor) for each, _ in caches[1:])
    return MemoryNeed(weights, per_token, sum(round(fixed * factor) for _, fixed in caches), int(longest))


def weights_bytes(folder: Path, config: dict[str, Any], expanded: bool = False) -> int:
    """The weights as stored, or with every value in fp32. Packed values of quantised weights are counted one by one."""
    tensors = {name: entry for file in weight_files(folder) for name, entry in tensor_items(file).items()}
    if not expanded:
        return sum(items * ITEM_BITS.get(kind, 16) // 8 for kind, items in tensors.values())
    total, quantisation = 0, config.get("quantization") or config.get("quantization_config") or {}
    for name, (_kind, items) in tensors.items():
        module, _, part = name.rpartition(".")
        packed = tensors.get(f"{module}.weight", ("", 0))[0] == "U32"
        if packed and part == "weight":
            own = quantisation.get(module)
            items = items * 32 // ((own if isinstance(own, dict) else quantisation).get("bits") or 4)
        elif packed and part in ("scales", "biases"):
            continue  # their work is done once the weights are expanded
        total += 4 * items
    return total


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a config.json, which models that also see or hear keep in a section."""
    section = config.get("text_config")
    return {**config, **section} if isinstance(section, dict) else config


def cache_need(config: dict[str, Any]) -> tuple[int, int]:
    """Bytes for each token of context, and bytes whatever the context is; bf16 keys and values, fp32 states."""
    config = config.get("transformer_layer_config") or text_config(config)
    per_token = fixed = 0
    for kind in layer_kinds(config):
        if kind == "full":
            per_token += _row(config, is_global=True)
        elif kind == "window":
            window = config.get("sliding_window") or config.get("sliding_window_size") or 4096
            fixed += _row(config, is_global=False) * (int(window) + GROWTH)
        elif kind == "delta":
            fixed += _delta_state(config)
        elif kind == "mamba":
            fixed += _mamba_state(config)
        elif kind == "conv":
            fixed += CACHE_ITEM * int(config.get("conv_L_cache") or 3) * int(config["hidden_size"])
    return per_token, fixed


def layer_kinds(config: dict[str, Any]) -> list[str]:
    """What each layer keeps: "full", "window", "delta", "mamba", "conv" or "" for nothing."""
    layers = int(config.get("num_hidden_layers") or 0)
    for key, marks in PATTERNS.items():
        pattern = config.get(key)
        if isinstance(pattern, str | list) and pattern:
            return [marks.get(pattern[layer % len(pattern)], "") for layer in range(layers)]
    types = config.get("layer_types")
    if isinstance(types, list) and types:
        names = {"full_attention": "full", "attention": "full", "sliding_attention": "window", "linear_attention": "delta",
                 "mamba": "mamba", "conv": "conv"}  # fmt: skip
        shared = int(config.get("num_kv_shared_layers") or 0)  # these look into the caches of layers before them
        return [names.get(str(kind), "full") for kind in types[: len(types) - shared]]
    family = str(config.get("model_type") or "")
    if family == "falcon_h1":  # attention and a state side by side in each layer
        return ["full", "mamba"] * layers
    if "linear_num_value_heads" in config:
        interval = int(config.get("full_attention_interval") or 4)
        return ["full" if (layer + 1) % interval == 0 else "delta" for layer in range(layers)]
    if isinstance(config.get("full_attn_idxs"), list):
        return ["full" if layer in config["full_attn_idxs"] else "conv" for layer in range(layers)]
    pattern_length = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern")
    if isinstance(pattern_length, int) and config.get("sliding_window"):
        return ["full" if (layer + 1) % pattern_length == 0 else "window" for layer in range(layers)]
    return ["full"] * layers


def _row(config: dict[str, Any], is_global: bool) -> int:
    """Keys and values of one token in one layer; Gemma 4's global layers have sizes of their own."""
    heads = int(config.get("num_attention_heads") or 1)
    groups = int(config.get("num_key_value_heads") or heads)
    size = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
    if is_global:
        groups = int(config.get("num_global_key_value_heads") or groups)
        size = int(config.get("global_head_dim") or size)
    return 2 * CACHE_ITEM * groups * size


def _delta_state(config: dict[str, Any]) -> int:
    keys = int(config["linear_num_key_heads"]) * int(config["linear_key_head_dim"])
    heads, size = int(config["linear_num_value_heads"]), int(config["linear_value_head_dim"])
    rows = int(config.get("linear_conv_kernel_dim") or 4) - 1
    return STATE_ITEM * heads * size * int(config["linear_key_head_dim"]) + CACHE_ITEM * rows * (2 * keys + heads * size)


def _mamba_state(config: dict[str, Any]) -> int:
    heads = int(config.get("mamba_num_heads") or config.get("mamba_n_heads") or 0)
    size = int(config.get("mamba_head_dim") or config.get("mamba_d_head") or 0)
    state = int(config.get("ssm_state_size") or config.get("mamba_d_state") or 0)
    groups = int(config.get("n_groups") or config.get("mamba_n_groups") or 1)
    rows = int(config.get("conv_kernel") or config.get("mamba_d_conv") or 4) - 1
    return STATE_ITEM * heads * size * state + CACHE_ITEM * rows * (heads * size + 2 * groups * state)
