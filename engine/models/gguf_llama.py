"""What a llama-architecture GGUF means to mlx-lm: its config.json, and which tensor is which module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.models.gguf_file import GgufFile

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens",
    "output_norm.weight": "model.norm",
    "output.weight": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers a llama model is built from. ``hidden`` and ``ffn`` in features, ``context`` in tokens."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    norm_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None

    @classmethod
    def read(cls, file: GgufFile) -> Shape:
        """Reads the metadata. Raises ``ModelError`` for another architecture or a missing or unusable key."""
        architecture = file.get("general.architecture", str)
        if architecture != "llama":
            raise ModelError(f"{file.path.name} is a {architecture!r} model: only 'llama' GGUF files can be imported.")
        heads = file.get("llama.attention.head_count", int)
        hidden = file.get("llama.embedding_length", int)
        if heads < 1 or hidden < 1:
            raise ModelError(f"{file.path.name} gives {heads} heads of {hidden} features: it cannot be imported.")
        head_dim = file.get("llama.attention.key_length", int, hidden // heads)
        if file.get("llama.rope.dimension_count", int, head_dim) != head_dim:
            raise ModelError(f"{file.path.name} rotates only a part of each head, which is not supported.")
        return cls(
            layers=file.get("llama.block_count", int),
            hidden=hidden,
            ffn=file.get("llama.feed_forward_length", int),
            heads=heads,
            kv_heads=file.get("llama.attention.head_count_kv", int, heads),
            head_dim=head_dim,
            context=file.get("llama.context_length", int),
            norm_eps=_as_written(file.get("llama.attention.layer_norm_rms_epsilon", float)),
            rope_theta=_as_written(file.get("llama.rope.freq_base", float, 10000.0)),
            rope_scaling=_rope_scaling(file),
        )

    def config(self, vocabulary: int, tied: bool) -> dict[str, Any]:
        """The keys of ``mlx_lm.models.llama.ModelArgs``."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.ffn,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.norm_eps,
            "vocab_size": vocabulary,
            "max_position_embeddings": self.context,
            "attention_bias": False,
            "mlp_bias": False,
            "hidden_act": "silu",
            "rope_theta": self.rope_theta,
            "rope_traditional": False,
            "rope_scaling": self.rope_scaling,
            "tie_word_embeddings": tied,
            "torch_dtype": "float32",
        }

    def expected_shape(self, module: str) -> tuple[int, ...] | None:
        """Rows and columns a module's weight must have; None where the vocabulary decides."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes = {
            "q_proj": (q, self.hidden),
            "k_proj": (kv, self.hidden),
            "v_proj": (kv, self.hidden),
            "o_proj": (self.hidden, q),
            "gate_proj": (self.ffn, self.hidden),
            "up_proj": (self.ffn, self.hidden),
            "down_proj": (self.hidden, self.ffn),
        }
        last = module.rsplit(".", 1)[-1]
        return (self.hidden,) if last.endswith("norm") else shapes.get(last)

    def row_order(self, module: str) -> NDArray | None:
        """llama.cpp interleaves the two halves of each q and k head for its RoPE; these row indices undo that."""
        heads = {"q_proj": self.heads, "k_proj": self.kv_heads}.get(module.rsplit(".", 1)[-1])
        if heads is None:
            return None
        rows = np.arange(heads * self.head_dim).reshape(heads, self.head_dim // 2, 2)
        return rows.transpose(0, 2, 1).reshape(-1)

    def modules(self) -> set[str]:
        """Every module that must have a weight, but for an untied head."""
        layered = {f"model.layers.{layer}.{name}" for layer in range(self.layers) for name in _IN_LAYER.values()}
        return layered | {"model.embed_tokens", "model.norm"}


def module_of(tensor: str) -> str | None:
    """mlx-lm's module for a GGUF tensor name; None for one this program does not know."""
    if tensor in _TOP_LEVEL:
        return _TOP_LEVEL[tensor]
    match = _LAYER_TENSOR.fullmatch(tensor)
    if match is None or match[2] not in _IN_LAYER:
        return None
    return f"model.layers.{int(match[1])}.{_IN_LAYER[match[2]]}"


def _as_written(value: float) -> float:
    """GGUF keeps fp32: 1e-05 comes back as 9.999999747378752e-06. The shortest number with that fp32 value is meant."""
    return float(str(np.float32(value)))


def _rope_scaling(file: GgufFile) -> dict[str, Any] | None:
    kind = file.get("llama.rope.scaling.type", str, "none")
    if kind == "none":
        return None
    if kind == "linear":
        return {"type": "linear", "factor": file.get("llama.rope.scaling.factor", float)}
    raise ModelError(f"{file.path.name} scales its positions by {kind!r}, which is not supported.")
