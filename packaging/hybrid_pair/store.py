"""How the target is stored: an mlx-lm checkpoint of 8-bit groups, and the exact values that such a checkpoint stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from hybrid import Sizes, Weights
from safetensors.numpy import load_file, save_file
from torch import Tensor

BITS, GROUP = 8, 64
MODEL, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """``values`` fp32 under their own names; ``tensors`` as the file holds them."""

    values: Weights
    tensors: dict[str, np.ndarray]


def rounded(weights: Weights) -> Stored:
    """Matrices of whole groups become MLX's affine groups with fp32 scales (with narrower ones MLX would round what it expands),
    all else stays fp32. Raises ``ValueError`` where something is not finite."""
    values: Weights = {}
    tensors: dict[str, np.ndarray] = {}
    for name, weight in weights.items():
        weight = weight.detach().float()
        if not weight.isfinite().all():
            raise ValueError(f"{name} is not finite")
        if weight.dim() == 2 and weight.shape[0] >= GROUP and weight.shape[1] % GROUP == 0:
            values[name], parts = _grouped(weight)
            stem = name.removesuffix(".weight")
            tensors |= {f"{stem}.{part}": array for part, array in parts.items()}
        else:
            values[name], tensors[name] = weight, weight.cpu().numpy()
    return Stored(values, tensors)


def _grouped(weight: Tensor) -> tuple[Tensor, dict[str, np.ndarray]]:
    """What 8-bit groups make of ``weight`` [R, C], and their parts: packed [R, C/4], scales and biases [R, C/GROUP]."""
    groups = weight.unflatten(1, (-1, GROUP))
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((high - low) / (2**BITS - 1)).clamp(min=1e-6)
    steps = ((groups - low) / scale).round().clamp(0, 2**BITS - 1)
    packed = np.ascontiguousarray(steps.flatten(1).to(torch.uint8).cpu().numpy()).view(np.uint32)
    parts = {"weight": packed, "scales": scale[..., 0].cpu().numpy(), "biases": low[..., 0].cpu().numpy()}
    return (steps * scale + low).flatten(1), parts


def config(sizes: Sizes, end: int) -> dict[str, object]:
    """config.json as mlx-lm reads Qwen3.5."""
    return {
        "model_type": "qwen3_5",
        "tie_word_embeddings": True,
        "eos_token_id": end,
        "quantization": {"group_size": GROUP, "bits": BITS},
        "text_config": {
            "model_type": "qwen3_5_text",
            "vocab_size": sizes.vocabulary,
            "hidden_size": sizes.hidden,
            "intermediate_size": sizes.inner,
            "num_hidden_layers": sizes.layers,
            "full_attention_interval": sizes.interval,
            "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.kv_heads,
            "head_dim": sizes.head_dim,
            "linear_num_key_heads": sizes.key_heads,
            "linear_num_value_heads": sizes.value_heads,
            "linear_key_head_dim": sizes.delta_dim,
            "linear_value_head_dim": sizes.delta_dim,
            "linear_conv_kernel_dim": sizes.kernel,
            "rms_norm_eps": sizes.eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": sizes.theta, "partial_rotary_factor": sizes.rotary},
            "max_position_embeddings": sizes.context,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "eos_token_id": end,
        },
    }


def write_target(weights: Weights, sizes: Sizes, end: int, folder: Path) -> Weights:
    """Writes the checkpoint and returns the values it stands for. A half-written file never replaces a whole one."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = rounded(weights)
    (folder / CONFIG).write_text(json.dumps(config(sizes, end), indent=1) + "\n", "utf-8")
    part = folder / (MODEL + ".part")
    save_file(stored.tensors, part, {"format": "mlx"})
    part.replace(folder / MODEL)
    return stored.values


def read_target(folder: Path, device: torch.device) -> Weights:
    """The values that a checkpoint written by ``write_target`` stands for."""
    tensors, values = load_file(folder / MODEL), {}
    for name, array in tensors.items():
        stem = name.removesuffix(".weight")
        if f"{stem}.scales" in tensors:
            steps = torch.from_numpy(array.view(np.uint8).astype(np.float32)).unflatten(1, (-1, GROUP))
            scale, low = (torch.from_numpy(tensors[f"{stem}.{part}"])[..., None] for part in ("scales", "biases"))
            values[name] = (steps * scale + low).flatten(1).to(device)
        elif not name.endswith((".scales", ".biases")):
            values[name] = torch.from_numpy(array).to(device)
    return values
