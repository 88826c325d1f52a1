"""The frozen target in PyTorch: weights from its GGUF file, one pass with taps for training, one-token steps for writing data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes that the target and its draft share (SmolLM2-135M)."""

    hidden: int = 576
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    head_dim: int = 64
    inner: int = 1536
    vocabulary: int = 49152
    eps: float = 1e-5
    theta: float = 1e5


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last axis, in fp32; the result has the type of ``x``."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotary_table(positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """fp32 cosines and sines [..., head_dim] for whole-number ``positions`` [...]."""
    exponents = torch.arange(0, shape.head_dim, 2, device=positions.device).float() / shape.head_dim
    angles = positions[..., None].float() * shape.theta**-exponents
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [..., L, head_dim], halves paired (not neighbours)."""
    low, high = x.chunk(2, -1)
    return (x.float() * cos + torch.cat([-high, low], -1).float() * sin).to(x.dtype)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer; q, k, v and gate, up are stacked so that each is one product."""

    input_norm: Tensor
    qkv: Tensor
    out: Tensor
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class TargetWeights:
    """All of the target. The embedding [V, H] is the head too."""

    embedding: Tensor
    norm: Tensor
    layers: tuple[LayerWeights, ...]

    def to(self, dtype: torch.dtype, device: torch.device) -> TargetWeights:
        layers = tuple(
            LayerWeights(*(getattr(layer, name).to(device, dtype) for name in LayerWeights.__slots__)) for layer in self.layers
        )
        return TargetWeights(self.embedding.to(device, dtype), self.norm.to(device, dtype), layers)


def read_gguf(path: Path, shape: Shape) -> TargetWeights:
    """The fp32 weights of a Llama GGUF file. Its q and k rows are stored pairwise for RoPE and put back in halves here."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    found = {t.name: torch.from_numpy(np.array(dequantize(t.data, t.tensor_type))) for t in GGUFReader(path).tensors}

    def halves(name: str, heads: int) -> Tensor:
        rows = found[name].view(heads, shape.head_dim // 2, 2, -1)
        return rows.transpose(1, 2).reshape(heads * shape.head_dim, -1)

    layers = []
    for index in range(shape.layers):
        name = f"blk.{index}."
        query, key = halves(f"{name}attn_q.weight", shape.heads), halves(f"{name}attn_k.weight", shape.kv_heads)
        layers.append(
            LayerWeights(
                found[f"{name}attn_norm.weight"],
                torch.cat([query, key, found[f"{name}attn_v.weight"]]),
                found[f"{name}attn_output.weight"],
                found[f"{name}ffn_norm.weight"],
                torch.cat([found[f"{name}ffn_gate.weight"], found[f"{name}ffn_up.weight"]]),
                found[f"{name}ffn_down.weight"],
            )
        )
    return TargetWeights(found["token_embd.weight"], found["output_norm.weight"], tuple(layers))


def split_heads(qkv: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [N, A, L, d], keys and values [N, G, L, d] from [N, L, (A+2G)*d]."""
    rows, length, _ = qkv.shape
    parts = qkv.view(rows, length, shape.heads + 2 * shape.kv_heads, shape.head_dim).transpose(1, 2)
    return parts.split([shape.heads, shape.kv_heads, shape.kv_heads], 1)  # type: ignore[return-value]


def mlp(x: Tensor, post_norm: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """The residual stream after the SwiGLU block."""
    gate, up = F.linear(rms_norm(x, post_norm, eps), gate_up).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


def target_layer(
    x: Tensor, cos: Tensor, sin: Tensor, input_norm: Tensor, qkv: Tensor, out: Tensor, post_norm: Tensor, gate_up: Tensor,
    down: Tensor, shape: Shape,
) -> Tensor:  # fmt: skip
    """One causal layer over whole rows [N, L, H]."""
    q, k, v = split_heads(F.linear(rms_norm(x, input_norm, shape.eps), qkv), shape)
    mixed = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), out)
    return mlp(x, post_norm, gate_up, down, shape.eps)


class Target:
    """The target over whole sequences. ``compiled`` fuses each layer; use it for fixed shapes only."""

    def __init__(self, weights: TargetWeights, shape: Shape, compiled: bool = False):
        self.weights, self.shape = weights, shape
        self._layer = torch.compile(target_layer, dynamic=False) if compiled else target_layer

    def __call__(self, ids: Tensor, taps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Final-normed rows [N, L, H] and taps [N, L, n*H] for ``ids`` [N, L]."""
        x = F.embedding(ids, self.weights.embedding)
        cos, sin = rotary_table(torch.arange(ids.shape[1], device=ids.device), self.shape)
        kept = []
        for index, layer in enumerate(self.weights.layers):
            x = self._layer(
                x, cos, sin, layer.input_norm, layer.qkv, layer.out, layer.post_norm, layer.gate_up, layer.down, self.shape
            )
            if index in taps:
                kept.append(x)
        return rms_norm(x, self.weights.norm, self.shape.eps), torch.cat(kept, -1)


class Decoder:
    """One token a step for many rows in lock step: all rows are always at the same position, so nothing is padded."""

    def __init__(self, weights: TargetWeights, shape: Shape, rows: int, length: int):
        self.weights, self.shape = weights, shape
        device, dtype = weights.norm.device, weights.norm.dtype
        size = (rows, shape.kv_heads, length, shape.head_dim)
        self.keys = [torch.zeros(size, device=device, dtype=dtype) for _ in weights.layers]
        self.values = [torch.zeros(size, device=device, dtype=dtype) for _ in weights.layers]
        self.cos, self.sin = rotary_table(torch.arange(length, device=device), shape)
        self.places = torch.arange(length, device=device)

    def step(self, tokens: Tensor, position: Tensor, reach: int) -> Tensor:
        """Logits [R, V] after ``tokens`` [R] at ``position`` [1]; only the first ``reach`` cache places are looked at."""
        shape, group = self.shape, self.shape.heads // self.shape.kv_heads
        rows = tokens.shape[0]
        x = F.embedding(tokens, self.weights.embedding)[:, None]
        cos, sin = self.cos[position], self.sin[position]
        seen = torch.zeros(reach, device=x.device, dtype=x.dtype).masked_fill(self.places[:reach] > position, float("-inf"))
        for layer, keys, values in zip(self.weights.layers, self.keys, self.values, strict=True):
            q, k, v = split_heads(F.linear(rms_norm(x, layer.input_norm, shape.eps), layer.qkv), shape)
            keys.index_copy_(2, position, rotate(k, cos, sin))
            values.index_copy_(2, position, v.contiguous())
            # The heads that share a key head stand as rows of one query, so keys are read once and never expanded.
            q = rotate(q, cos, sin).reshape(rows, shape.kv_heads, group, shape.head_dim)
            mask = seen.expand(rows, shape.kv_heads, group, reach)
            mixed = F.scaled_dot_product_attention(q, keys[:, :, :reach], values[:, :, :reach], attn_mask=mask)
            x = x + F.linear(mixed.reshape(rows, 1, -1), layer.out)
            x = mlp(x, layer.post_norm, layer.gate_up, layer.down, shape.eps)
        return F.linear(rms_norm(x[:, 0], self.weights.norm, shape.eps), self.weights.embedding)
