"""The DFlash draft written down a second time, in plain NumPy float64 and without any cache: the oracle of the tests here.

It recomputes everything from all committed taps at every call, in the form of the definition: context = norm(fc(taps)), queries
from the block only, keys and values from [context; block] through the same projections, absolute positions throughout. DFlash 2
adds a convolution around every sublayer and a walk through each slot's candidates. Names are z-lab's, whatever was loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

Weights = dict[str, np.ndarray]
Rows = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Reference:
    """``causal`` and ``windows`` hold one entry a layer, as DraftConvention's do. ``group`` 0: no convolutions."""

    weights: Weights
    heads: int
    kv_heads: int
    theta: float
    eps: float
    causal: tuple[bool, ...]
    windows: tuple[int | None, ...]
    from_anchor: bool = False
    group: int = 0

    @classmethod
    def of(
        cls, config: dict[str, Any], weights: dict[str, mx.array], causal: tuple[bool, ...], windows: tuple, **more: Any
    ) -> Reference:
        wide = {name: np.array(value.astype(mx.float32)).astype(np.float64) for name, value in weights.items()}
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        return cls(wide, heads, kv_heads, config["rope_theta"], config["rms_norm_eps"], causal, windows, **more)

    def features(self, taps: np.ndarray) -> np.ndarray:
        """Context rows [L, H] of ``taps`` [L, n*H]."""
        return self.norm(taps @ self.weights["fc.weight"].T, "hidden_norm.weight")

    def block(self, embeddings: np.ndarray, taps: np.ndarray) -> np.ndarray:
        """Final rows [B, H] for ``embeddings`` [B, H] that follow the positions 0..P-1 of ``taps`` [P, n*H]."""
        context, hidden = self.features(taps), embeddings
        for layer in range(len(self.causal)):
            normed = self.norm(hidden, f"layers.{layer}.input_layernorm.weight")
            enter, leave = self.convolution(f"layers.{layer}.attention_conv.", normed)
            hidden = hidden + leave(self.attention(layer, enter(normed), context))
            normed = self.norm(hidden, f"layers.{layer}.post_attention_layernorm.weight")
            enter, leave = self.convolution(f"layers.{layer}.mlp_conv.", normed)
            hidden = hidden + leave(self.mlp(layer, enter(normed)))
        return self.norm(hidden, "norm.weight")

    def mlp(self, layer: int, rows: np.ndarray) -> np.ndarray:
        gate, up, down = (self.weights[f"layers.{layer}.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        gated = rows @ gate.T
        return (gated / (1 + np.exp(-gated)) * (rows @ up.T)) @ down.T

    def convolution(self, prefix: str, normed: np.ndarray) -> tuple[Rows, Rows]:
        """What is done to a sublayer's input and to its output, one row and one channel at a time."""
        if not self.group:
            return (lambda rows: rows), (lambda rows: rows)
        base = self.weights[prefix + "base_kernel"]
        chosen = (normed @ self.weights[prefix + "kernel_projection.weight"].T).reshape(len(normed), *base.shape[:2], -1)

        def mixed(side: int, rows: np.ndarray) -> np.ndarray:
            out = np.zeros_like(rows)
            for slot in range(len(rows)):
                for tap in range(min(base.shape[1], slot + 1)):
                    for channel in range(rows.shape[1]):
                        weight = base[side, tap, channel] + chosen[slot, side, tap, channel // self.group]
                        out[slot, channel] += weight * rows[slot - tap, channel]
            return out

        return (lambda rows: mixed(0, rows)), (lambda rows: mixed(1, rows))

    def walk(self, logits: np.ndarray, hidden: np.ndarray, anchor: int, top_k: int, multiplier: float, softcap: float) -> list[int]:
        """DFlash 2's greedy path, one slot after the other. ``softcap`` 0: none."""
        before, after = (self.weights[f"candidate_selector.{name}_codebook"] for name in ("predecessor", "successor"))
        path: list[int] = []
        for row, state in zip(logits * multiplier, hidden, strict=True):
            row = softcap * np.tanh(row / softcap) if softcap else row
            candidates = np.argsort(-row)[:top_k]
            step = before[path[-1] if path else anchor] * (self.weights["candidate_selector.hidden_projection.weight"] @ state)
            scores = [row[candidate] + step @ after[candidate] for candidate in candidates]
            path.append(int(candidates[int(np.argmax(scores))]))
        return path

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
        return mixed.reshape(len(block), -1) @ self.weights[prefix + "o_proj.weight"].T + self.weights.get(
            prefix + "o_proj.bias", 0.0
        )

    def sees(self, layer: int, query: int, key: int, start: int) -> bool:
        """Whether the slot at absolute position ``query`` may look at ``key``; the block begins at ``start``."""
        window = self.windows[layer]
        if key >= start:
            return key <= query or not self.causal[layer]
        if window is None:
            return True
        return key >= start - window if self.from_anchor else query - key < window

    def split(self, rows: np.ndarray, name: str, heads: int) -> np.ndarray:
        bias = self.weights.get(name.replace("weight", "bias"), 0.0)
        return (rows @ self.weights[name].T + bias).reshape(len(rows), heads, -1)

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
