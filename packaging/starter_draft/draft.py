"""The draft being trained: parameters under their checkpoint names, its forward pass over packed blocks, reading and export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from target import Shape, rms_norm, rotary_table, rotate
from torch import Tensor

SHARD_BYTES = 15 << 20  # results come back from the GPU machine in files of at most 16 MiB
LAYER_PARTS = (
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "self_attn.q_norm",
    "self_attn.k_norm", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip
OUTPUTS = ("self_attn.o_proj", "mlp.down_proj")


def draft_layer(
    x: Tensor, context: Tensor, tables: tuple[Tensor, Tensor, Tensor, Tensor], mask: Tensor, input_norm: Tensor, q_proj: Tensor,
    k_proj: Tensor, v_proj: Tensor, o_proj: Tensor, q_norm: Tensor, k_norm: Tensor, post_norm: Tensor, gate: Tensor, up: Tensor,
    down: Tensor, shape: Shape,
) -> Tensor:  # fmt: skip
    """One layer over block rows [N, Q, H]; keys and values come from ``context`` [N, S, H] and the blocks alike.

    ``tables`` are cos, sin of the block rows [N, Q, d] and of the context rows [S, d]; ``mask`` [N, 1, Q, S+Q] is added to scores.
    """
    cos_block, sin_block, cos_context, sin_context = tables
    rows, dtype = x.shape[0], x.dtype
    hidden = rms_norm(x, input_norm.to(dtype), shape.eps)

    def project(stream: Tensor, weight: Tensor, heads: int) -> Tensor:
        return F.linear(stream, weight.to(dtype)).view(rows, -1, heads, shape.head_dim).transpose(1, 2)

    def keys(stream: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return rotate(rms_norm(project(stream, k_proj, shape.kv_heads), k_norm.to(dtype), shape.eps), cos, sin)

    query = rms_norm(project(hidden, q_proj, shape.heads), q_norm.to(dtype), shape.eps)
    query = rotate(query, cos_block[:, None], sin_block[:, None])
    key = torch.cat([keys(context, cos_context, sin_context), keys(hidden, cos_block[:, None], sin_block[:, None])], 2)
    value = torch.cat([project(context, v_proj, shape.kv_heads), project(hidden, v_proj, shape.kv_heads)], 2)
    group = shape.heads // shape.kv_heads
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)  # masked fused kernels want equal heads
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), o_proj.to(dtype))
    hidden = rms_norm(x, post_norm.to(dtype), shape.eps)
    return x + F.linear(F.silu(F.linear(hidden, gate.to(dtype))) * F.linear(hidden, up.to(dtype)), down.to(dtype))


class Draft:
    """fp32 master parameters; passes run in the type of what they are given."""

    def __init__(self, parameters: dict[str, Tensor], shape: Shape, compiled: bool = False):
        self.parameters, self.shape = parameters, shape
        self.depth = 1 + max(int(name.split(".")[1]) for name in parameters if name.startswith("layers."))
        self._layer = torch.compile(draft_layer, dynamic=False) if compiled else draft_layer

    def features(self, taps: Tensor) -> Tensor:
        """Context features [N, S, H] of taps [N, S, n*H]."""
        p = self.parameters
        joined = F.linear(taps, p["fc.weight"].to(taps.dtype))
        return rms_norm(joined, p["hidden_norm.weight"].to(taps.dtype), self.shape.eps)

    def __call__(self, block: Tensor, taps: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Final-normed rows [N, Q, H] for block embeddings [N, Q, H] standing at ``positions`` [N, Q]."""
        context = self.features(taps)
        tables = (
            *rotary_table(positions, self.shape),
            *rotary_table(torch.arange(taps.shape[1], device=taps.device), self.shape),
        )
        x = block
        for index in range(self.depth):
            parts = [self.parameters[f"layers.{index}.{part}.weight"] for part in LAYER_PARTS]
            x = self._layer(x, context, tables, mask, *parts, self.shape)
        return rms_norm(x, self.parameters["norm.weight"].to(x.dtype), self.shape.eps)


def read_draft(folder: Path, keep: list[int] | None, device: torch.device) -> dict[str, Tensor]:
    """fp32 parameters of a checkpoint in z-lab layout; ``keep`` names the layers that stay, in order (None: all). A layer named
    once more is added with its outputs at zero, so that the deeper draft begins by saying what the shallower one says."""
    stored = {name: value for file in sorted(folder.glob("*.safetensors")) for name, value in load_file(file).items()}
    result = {name: value for name, value in stored.items() if name != "d2t" and not name.startswith("layers.")}
    depth = 1 + max(int(name.split(".")[1]) for name in stored if name.startswith("layers."))
    chosen = range(depth) if keep is None else keep
    for place, index in enumerate(chosen):
        for part in LAYER_PARTS:
            value = stored[f"layers.{index}.{part}.weight"]
            added = index in list(chosen)[:place] and part in OUTPUTS
            result[f"layers.{place}.{part}.weight"] = torch.zeros_like(value) if added else value
    return {name: value.to(device, torch.float32) for name, value in result.items()}


def export(
    parameters: dict[str, Tensor], folder: Path, shape: Shape, taps: tuple[int, ...], block: int, mask_id: int,
    vocabulary: Tensor | None,
) -> None:  # fmt: skip
    """Writes config.json and bf16 safetensors (in shards where large). ``vocabulary``: the target ids [K] the head keeps."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.detach().to(torch.bfloat16).cpu().contiguous() for name, value in parameters.items()}
    config: dict[str, Any] = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": shape.hidden,
        "num_hidden_layers": 1 + max(int(name.split(".")[1]) for name in parameters if name.startswith("layers.")),
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.inner,
        "vocab_size": shape.vocabulary,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.theta,
        "max_position_embeddings": 8192,
        "block_size": block,
        "num_target_layers": shape.layers,
        "dflash_config": {"target_layer_ids": list(taps), "mask_token_id": mask_id},
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "hidden_act": "silu",
    }
    if vocabulary is not None:
        ids = vocabulary.sort().values.cpu().to(torch.int64)
        tensors["d2t"] = ids - torch.arange(len(ids))
        config["draft_vocab_size"] = len(ids)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    shards: list[dict[str, Tensor]] = [{}]
    for name, value in tensors.items():
        if shards[-1] and sum(t.nbytes for t in shards[-1].values()) + value.nbytes > SHARD_BYTES:
            shards.append({})
        shards[-1][name] = value
    for index, shard in enumerate(shards):
        save_file(shard, folder / f"model-{index + 1:05d}-of-{len(shards):05d}.safetensors", {"format": "pt"})


def join_shards(folder: Path) -> None:
    """Makes one model.safetensors of the shards in ``folder``."""
    shards = sorted(folder.glob("model-*.safetensors"))
    merged = {name: value for shard in shards for name, value in load_file(shard).items()}
    save_file(merged, folder / "model.safetensors", {"format": "pt"})
    for shard in shards:
        shard.unlink()
