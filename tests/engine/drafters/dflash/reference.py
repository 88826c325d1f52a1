"""The DFlash draft written down a second time, in plain NumPy float64 and without any cache: the oracle of the tests here.

It recomputes everything from all committed taps at every call, in the form of the definition: context = norm(fc(taps)), queries
from the block only, keys and values from [context; block] through the same projections, absolute positions throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Reference:
    """``causal`` and ``windows`` hold one entry a layer, as DraftConvention's do."""

    weights: Weights
    heads: int
    kv_heads: int
    theta: float
    eps: float
    causal: tuple[bool, ...]
    windows: tuple[int | None, ...]

    @classmethod
    def of(cls, config: dict[str, Any], weights: dict[str, mx.array], causal: tuple[bool, ...], windows: tuple) -> Reference:
        wide = {name: np.array(value.astype(mx.float32)).astype(np.float64) for name, value in weights.items()}
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        return cls(wide, heads, kv_heads, config["rope_theta"], config["rms_norm_eps"], causal, windows)

    def features(self, taps: np.ndarray) -> np.ndarray:
        """Context rows [L, H] of ``taps`` [L, n*H]."""
        return self.norm(taps @ self.weights["fc.weight"].T, "hidden_norm.weight")

    def block(self, embeddings: np.ndarray, taps: np.ndarray) -> np.ndarray:
        """Final rows [B, H] for ``embeddings`` [B, H] that follow the positions 0..P-1 of ``taps`` [P, n*H]."""
        context, hidden = self.features(taps), embeddings
        for layer in range(len(self.causal)):
            normed = self.norm(hidden, f"layers.{layer}.input_layernorm.weight")
            hidden = hidden + self.attention(layer, normed, context)
            normed = self.norm(hidden, f"layers.{layer}.post_attention_layernorm.weight")
            gate, up, down = (self.weights[f"layers.{layer}.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
            gated = normed @ gate.T
            hidden = hidden + (gated / (1 + np.exp(-gated)) * (normed @ up.T)) @ down.T
        return self.norm(hidden, "norm.weight")

    def attention(self, layer: int, block: np.ndarray, context: np.ndarray) -> np.ndarray:
        """One query at a time, one head at a time."""
        prefix, start = f"layers.{layer}.self_attn.", len(context)
        rows = np.concatenate([context, block])
        queries = self.split(block, prefix + "q_proj.weight", self.heads)
        keys = self.split(rows, prefix + "k_proj.weight", self.kv_heads)
        values = self.split(rows, prefix + "v_proj.weight", self.kv_heads)
        queries = self.rotate(self.norm(queries, prefix + "q_norm.weight"), start)
        keys = self.rotate(self.norm(keys, prefix + "k_norm.weight"), 0)
        mixed = np.zeros_like(queries)
        for slot in range(len(block)):
            seen = np.array([self.sees(layer, start + slot, key, start) for key in range(len(rows))])
            for head in range(self.heads):
                group = head // (self.heads // self.kv_heads)
                scores = keys[seen, group] @ queries[slot, head] / np.sqrt(queries.shape[-1])
                share = np.exp(scores - scores.max())
                mixed[slot, head] = (share / share.sum()) @ values[seen, group]
        return mixed.reshape(len(block), -1) @ self.weights[prefix + "o_proj.weight"].T

    def sees(self, layer: int, query: int, key: int, start: int) -> bool:
        """Whether the slot at absolute position ``query`` may look at ``key``; the block begins at ``start``."""
        window = self.windows[layer]
        if window is not None and query - key >= window:
            return False
        return key <= query or (key >= start and not self.causal[layer])

    def split(self, rows: np.ndarray, name: str, heads: int) -> np.ndarray:
        return (rows @ self.weights[name].T).reshape(len(rows), heads, -1)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.weights[name]

    def rotate(self, x: np.ndarray, start: int) -> np.ndarray:
        """RoPE on [L, heads, d] at positions start..start+L-1, halves rotated against each other."""
        half = x.shape[-1] // 2
        frequencies = self.theta ** (-np.arange(half) / half)
        angles = (start + np.arange(len(x)))[:, None, None] * frequencies
        first, second = x[..., :half], x[..., half:]
        return np.concatenate(
            [first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)], axis=-1
        )
