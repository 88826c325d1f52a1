"""The hybrid target in PyTorch: Qwen3.5's layers (three gated delta nets to one gated attention) under their checkpoint names."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from delta import CHUNK, delta_step, gated_delta
from target import Shape, rms_norm, rotary_table, rotate
from torch import Tensor

PREFIX = "language_model.model."
Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the target; ``key_heads`` < ``value_heads``, as in the larger models of the family."""

    vocabulary: int = 2048
    hidden: int = 192
    layers: int = 8
    interval: int = 4  # every so many layers, one of attention
    inner: int = 320
    heads: int = 3
    kv_heads: int = 1
    head_dim: int = 64
    rotary: float = 0.5  # the part of a head that is rotated
    key_heads: int = 2
    value_heads: int = 6
    delta_dim: int = 32  # of keys and values alike
    kernel: int = 4
    eps: float = 1e-6
    theta: float = 1e4
    context: int = 2048

    @property
    def key_width(self) -> int:
        return self.key_heads * self.delta_dim

    @property
    def value_width(self) -> int:
        return self.value_heads * self.delta_dim

    def recurrent(self, layer: int) -> bool:
        return (layer + 1) % self.interval != 0

    def draft_shape(self) -> Shape:
        """What its draft shares with it."""
        return Shape(
            self.hidden, self.layers, self.heads, self.kv_heads, self.head_dim, self.inner, self.vocabulary, self.eps, self.theta
        )

    def rotary_shape(self) -> Shape:
        return Shape(head_dim=int(self.head_dim * self.rotary), theta=self.theta)


def layer_shapes(sizes: Sizes, recurrent: bool) -> dict[str, tuple[int, ...]]:
    """Every parameter of a layer."""
    hidden, attention = sizes.hidden, sizes.heads * sizes.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (sizes.inner, hidden),
        "mlp.up_proj.weight": (sizes.inner, hidden),
        "mlp.down_proj.weight": (hidden, sizes.inner),
    }
    if not recurrent:
        return shapes | {
            "self_attn.q_proj.weight": (2 * attention, hidden),
            "self_attn.k_proj.weight": (sizes.kv_heads * sizes.head_dim, hidden),
            "self_attn.v_proj.weight": (sizes.kv_heads * sizes.head_dim, hidden),
            "self_attn.o_proj.weight": (hidden, attention),
            "self_attn.q_norm.weight": (sizes.head_dim,),
            "self_attn.k_norm.weight": (sizes.head_dim,),
        }
    channels = 2 * sizes.key_width + sizes.value_width
    return shapes | {
        "linear_attn.in_proj_qkv.weight": (channels, hidden),
        "linear_attn.in_proj_z.weight": (sizes.value_width, hidden),
        "linear_attn.in_proj_b.weight": (sizes.value_heads, hidden),
        "linear_attn.in_proj_a.weight": (sizes.value_heads, hidden),
        "linear_attn.conv1d.weight": (channels, sizes.kernel, 1),
        "linear_attn.dt_bias": (sizes.value_heads,),
        "linear_attn.A_log": (sizes.value_heads,),
        "linear_attn.norm.weight": (sizes.delta_dim,),
        "linear_attn.out_proj.weight": (hidden, sizes.value_width),
    }


def initial(sizes: Sizes, device: torch.device) -> Weights:
    """fp32 parameters to begin with."""
    shapes = {"embed_tokens.weight": (sizes.vocabulary, sizes.hidden), "norm.weight": (sizes.hidden,)}
    for layer in range(sizes.layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in layer_shapes(sizes, sizes.recurrent(layer)).items()}
    return {PREFIX + name: _initial(name, shape, sizes).to(device) for name, shape in shapes.items()}


def _initial(name: str, shape: tuple[int, ...], sizes: Sizes) -> Tensor:
    if name.endswith("A_log"):
        return torch.empty(shape).uniform_(1, 16).log()
    if name.endswith("dt_bias"):
        step = torch.exp(torch.empty(shape).uniform_(math.log(1e-3), math.log(0.1)))
        return step + torch.log(-torch.expm1(-step))  # softplus of it is the step
    if name.endswith("norm.weight"):
        return torch.ones(shape)
    if name.endswith("conv1d.weight"):
        return torch.empty(shape).uniform_(-1, 1) / sizes.kernel**0.5
    if name.endswith("embed_tokens.weight"):
        return torch.randn(shape) * 0.02
    less = (2 * sizes.layers) ** -0.5 if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")) else 1.0
    return torch.randn(shape) * less / shape[-1] ** 0.5


def project(x: Tensor, weights: Weights, name: str) -> Tensor:
    return F.linear(x, weights[name + ".weight"].to(x.dtype))


def normed(x: Tensor, weights: Weights, name: str, eps: float) -> Tensor:
    return rms_norm(x, weights[name + ".weight"].to(x.dtype), eps)


def mlp(x: Tensor, weights: Weights, eps: float) -> Tensor:
    hidden = normed(x, weights, "post_attention_layernorm", eps)
    gated = F.silu(project(hidden, weights, "mlp.gate_proj")) * project(hidden, weights, "mlp.up_proj")
    return x + project(gated, weights, "mlp.down_proj")


def rule_inputs(convolved: Tensor, hidden: Tensor, weights: Weights, sizes: Sizes) -> tuple[Tensor, ...]:
    """fp32 query, key, value, log gate and beta [..., Hv, (D)] of the rule from the convolution's output [..., C]."""
    wide = F.silu(convolved.float())
    query, key, value = wide.split([sizes.key_width, sizes.key_width, sizes.value_width], -1)
    group = sizes.value_heads // sizes.key_heads

    def unit(rows: Tensor) -> Tensor:
        rows = rows.unflatten(-1, (sizes.key_heads, sizes.delta_dim))
        rows = rows * torch.rsqrt(rows.square().sum(-1, keepdim=True) + 1e-6)
        return rows.repeat_interleave(group, -2)

    rate = project(hidden, weights, "linear_attn.in_proj_a").float() + weights["linear_attn.dt_bias"]
    step = torch.logaddexp(rate, torch.zeros_like(rate))  # softplus, whose own gradient torch.compile lays out wrongly
    log_gate = -weights["linear_attn.A_log"].exp() * step
    beta = project(hidden, weights, "linear_attn.in_proj_b").float().sigmoid()
    value = value.unflatten(-1, (sizes.value_heads, sizes.delta_dim))
    return unit(query) * sizes.delta_dim**-0.5, unit(key), value, log_gate, beta


def read_out(x: Tensor, output: Tensor, hidden: Tensor, weights: Weights, sizes: Sizes) -> Tensor:
    """The residual stream after a gated delta net whose rule gave ``output`` [..., Hv, D]."""
    gate = F.silu(project(hidden, weights, "linear_attn.in_proj_z").float().unflatten(-1, (sizes.value_heads, sizes.delta_dim)))
    output = normed(output, weights, "linear_attn.norm", sizes.eps) * gate
    return x + project(output.flatten(-2).to(x.dtype), weights, "linear_attn.out_proj")


def delta_layer(x: Tensor, weights: Weights, sizes: Sizes) -> Tensor:
    """One recurrent layer over whole rows [N, L, H]."""
    hidden = normed(x, weights, "input_layernorm", sizes.eps)
    rows, taps = project(hidden, weights, "linear_attn.in_proj_qkv"), weights["linear_attn.conv1d.weight"].to(x.dtype)
    length, padded = x.shape[1], F.pad(rows, (0, 0, sizes.kernel - 1, 0))
    convolved = sum(padded[:, index : index + length] * taps[:, index, 0] for index in range(sizes.kernel))
    x = read_out(x, gated_delta(*rule_inputs(convolved, hidden, weights, sizes)), hidden, weights, sizes)
    return mlp(x, weights, sizes.eps)


def attention_inputs(hidden: Tensor, cos: Tensor, sin: Tensor, weights: Weights, sizes: Sizes) -> tuple[Tensor, ...]:
    """Query, key, value [N, heads, L, d] and the output's gate [N, L, heads*d]; ``cos``, ``sin`` [L, rotated]."""
    both = project(hidden, weights, "self_attn.q_proj").unflatten(-1, (sizes.heads, 2 * sizes.head_dim))
    query, gate = both.chunk(2, -1)
    key = project(hidden, weights, "self_attn.k_proj").unflatten(-1, (sizes.kv_heads, sizes.head_dim))
    value = project(hidden, weights, "self_attn.v_proj").unflatten(-1, (sizes.kv_heads, sizes.head_dim))

    def turned(heads: Tensor, name: str) -> Tensor:
        heads = normed(heads, weights, name, sizes.eps).transpose(1, 2)
        part = cos.shape[-1]
        return torch.cat([rotate(heads[..., :part], cos, sin), heads[..., part:]], -1)

    return turned(query, "self_attn.q_norm"), turned(key, "self_attn.k_norm"), value.transpose(1, 2), gate.flatten(-2)


def attention_layer(x: Tensor, cos: Tensor, sin: Tensor, weights: Weights, sizes: Sizes) -> Tensor:
    """One layer of gated attention over whole rows [N, L, H]."""
    hidden = normed(x, weights, "input_layernorm", sizes.eps)
    query, key, value, gate = attention_inputs(hidden, cos, sin, weights, sizes)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(-2)
    return mlp(x + project(mixed * gate.sigmoid(), weights, "self_attn.o_proj"), weights, sizes.eps)


class Hybrid:
    """fp32 parameters; a pass runs in ``dtype``. ``compiled`` fuses each kind of layer; use it for fixed shapes only."""

    def __init__(self, weights: Weights, sizes: Sizes, dtype: torch.dtype = torch.float32, compiled: bool = False):
        self.weights, self.sizes, self.dtype = weights, sizes, dtype
        self.embedding, self.norm = weights[PREFIX + "embed_tokens.weight"], weights[PREFIX + "norm.weight"]
        self.parts = [
            {name.removeprefix(f"{PREFIX}layers.{layer}."): value for name, value in weights.items() if f".layers.{layer}." in name}
            for layer in range(sizes.layers)
        ]
        self._delta = torch.compile(delta_layer, dynamic=False) if compiled else delta_layer
        self._attention = torch.compile(attention_layer, dynamic=False) if compiled else attention_layer

    def __call__(self, ids: Tensor, taps: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
        """Final-normed rows [N, L, H] and taps [N, L, n*H] for ``ids`` [N, L], fresh states."""
        length = ids.shape[1]
        padded = F.pad(ids, (0, -length % CHUNK))
        x = F.embedding(padded, self.embedding).to(self.dtype)
        cos, sin = rotary_table(torch.arange(padded.shape[1], device=ids.device), self.sizes.rotary_shape())
        kept = []
        for index, weights in enumerate(self.parts):
            if self.sizes.recurrent(index):
                x = self._delta(x, weights, self.sizes)
            else:
                x = self._attention(x, cos, sin, weights, self.sizes)
            if index in taps:
                kept.append(x[:, :length])
        final = rms_norm(x[:, :length], self.norm.to(x.dtype), self.sizes.eps)
        return final, torch.cat(kept, -1) if kept else final[..., :0]


class Stepper:
    """One token a step for R rows in lock step, from fresh states; in fp32, as the engine runs it on a CPU."""

    def __init__(self, model: Hybrid, rows: int, length: int):
        self.model, sizes, device = model, model.sizes, model.embedding.device
        self.windows: list[Tensor] = []
        self.states: list[Tensor] = []
        self.caches: list[tuple[Tensor, Tensor]] = []
        for layer in range(sizes.layers):
            if sizes.recurrent(layer):
                self.windows.append(torch.zeros(rows, sizes.kernel - 1, 2 * sizes.key_width + sizes.value_width, device=device))
                self.states.append(torch.zeros(rows, sizes.value_heads, sizes.delta_dim, sizes.delta_dim, device=device))
            else:
                size = (rows, sizes.kv_heads, length, sizes.head_dim)
                self.caches.append((torch.zeros(size, device=device), torch.zeros(size, device=device)))
        self.cos, self.sin = rotary_table(torch.arange(length, device=device), sizes.rotary_shape())
        self.places = torch.arange(length, device=device)

    def restart(self) -> None:
        """Fresh states. Old keys and values lie behind the mask."""
        for state in (*self.windows, *self.states):
            state.zero_()

    def step(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Logits [R, V] after ``tokens`` [R] at ``position`` [1]."""
        model, sizes = self.model, self.model.sizes
        x = F.embedding(tokens, model.embedding)
        mask = torch.zeros(len(self.places), device=x.device).masked_fill(self.places > position, float("-inf"))
        recurrent, caches = iter(zip(self.windows, self.states, strict=True)), iter(self.caches)
        for index, weights in enumerate(model.parts):
            hidden = normed(x, weights, "input_layernorm", sizes.eps)
            if sizes.recurrent(index):
                x = self._recur(x, hidden, weights, *next(recurrent))
            else:
                keys, values = next(caches)
                query, key, value, gate = attention_inputs(hidden[:, None], self.cos[position], self.sin[position], weights, sizes)
                keys.index_copy_(2, position, key)
                values.index_copy_(2, position, value)
                mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask[None], enable_gqa=True)
                mixed = mixed.transpose(1, 2).flatten(-2) * gate.sigmoid()
                x = x + project(mixed[:, 0], weights, "self_attn.o_proj")
            x = mlp(x, weights, sizes.eps)
        return F.linear(rms_norm(x, model.norm, sizes.eps), model.embedding)

    def _recur(self, x: Tensor, hidden: Tensor, weights: Weights, window: Tensor, state: Tensor) -> Tensor:
        sizes = self.model.sizes
        seen = torch.cat([window, project(hidden, weights, "linear_attn.in_proj_qkv")[:, None]], 1)
        window.copy_(seen[:, 1:])
        convolved = (seen * weights["linear_attn.conv1d.weight"][..., 0].T).sum(1)
        output, after = delta_step(state, *rule_inputs(convolved, hidden, weights, sizes))
        state.copy_(after)
        return read_out(x, output, hidden, weights, sizes)
