"""The DFlash v1 draft as one MLX module; parameter names are the checkpoint's own.

B block slots, C context rows, n new context rows, H hidden size, A heads, G key/value heads, d head size.
"""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.rope_utils import initialize_rope

from engine.drafters.dflash.context import ContextCache
from engine.drafters.dflash.convention import DraftConvention


class DraftAttention(nn.Module):
    """Queries from the block only; keys and values from context rows, then block rows, through the same projections."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        c = convention
        self.heads, self.kv_heads, self.scale = c.num_heads, c.num_kv_heads, c.head_dim**-0.5
        self.q_proj = nn.Linear(c.hidden_size, c.num_heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.num_heads * c.head_dim, c.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(c.head_dim, eps=c.norm_eps)
        self.k_norm = nn.RMSNorm(c.head_dim, eps=c.norm_eps)
        self.rope = initialize_rope(c.head_dim, c.rope_theta, False, c.rope_scaling, c.max_positions)

    def keys_values(self, rows: mx.array, position: int) -> tuple[mx.array, mx.array]:
        """Keys (normed, rotated) and values [1, G, L, d] of ``rows`` [L, H], the first of which is at ``position``."""
        length = rows.shape[0]
        keys = self.k_norm(self.k_proj(rows).reshape(1, length, self.kv_heads, -1)).transpose(0, 2, 1, 3)
        values = self.v_proj(rows).reshape(1, length, self.kv_heads, -1).transpose(0, 2, 1, 3)
        return self.rope(keys, offset=position), values

    def __call__(
        self, block: mx.array, features: mx.array | None, context: ContextCache, layer: int, position: int, mask: mx.array | None
    ) -> mx.array:
        """Output [B, H] for ``block`` [B, H] at ``position``. ``features`` [n, H] end right before it and join the context."""
        slots = block.shape[0]
        fresh = 0 if features is None else features.shape[0]
        rows = block if features is None else mx.concatenate([features, block])
        keys, values = self.keys_values(rows, position - fresh)
        keys, values = context.extend(layer, keys, values, fresh)
        queries = self.q_norm(self.q_proj(block).reshape(1, slots, self.heads, -1)).transpose(0, 2, 1, 3)
        queries = self.rope(queries, offset=position)
        mixed = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=self.scale, mask=mask)
        return self.o_proj(mixed.transpose(0, 2, 1, 3).reshape(slots, -1))


class DraftMLP(nn.Module):
    """SwiGLU."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        hidden, inner = convention.hidden_size, convention.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def __call__(self, x: mx.array) -> mx.array:
        return self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))


class DraftLayer(nn.Module):
    """One pre-norm layer. Context features pass neither its input norm nor its MLP."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        self.self_attn = DraftAttention(convention)
        self.mlp = DraftMLP(convention)
        self.input_layernorm = nn.RMSNorm(convention.hidden_size, eps=convention.norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(convention.hidden_size, eps=convention.norm_eps)


class DFlashModel(nn.Module):
    """fc and hidden_norm turn taps into context features; the layers turn a block of embeddings into final-normed rows."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        self.convention = convention
        self.fc = nn.Linear(len(convention.taps) * convention.hidden_size, convention.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(convention.hidden_size, eps=convention.norm_eps)
        self.layers = [DraftLayer(convention) for _ in range(convention.num_layers)]
        self.norm = nn.RMSNorm(convention.hidden_size, eps=convention.norm_eps)
        if convention.draft_vocab_size is not None:
            self.d2t = mx.zeros((convention.draft_vocab_size,), dtype=mx.int64)

    def target_ids(self) -> mx.array | None:
        """The vocabulary rows [K] this draft chooses from; None: all of them."""
        return mx.arange(self.d2t.shape[0]) + self.d2t if "d2t" in self else None

    def features(self, taps: mx.array) -> mx.array:
        """Context features [L, H] of ``taps`` [L, n*H]. Never in fp16: the first token's activations overflow it."""
        wide = mx.float32 if taps.dtype == mx.float16 else taps.dtype
        return self.hidden_norm(self.fc(taps.astype(wide)))

    def add_context(self, features: mx.array, context: ContextCache, position: int) -> None:
        """Puts ``features`` [L, H], the first at ``position``, into every layer's context."""
        for index, layer in enumerate(self.layers):
            keys, values = layer.self_attn.keys_values(features, position)
            context.extend(index, keys, values, features.shape[0])

    def __call__(self, block: mx.array, features: mx.array | None, context: ContextCache, position: int) -> mx.array:
        """Final-normed rows [B, H] for block embeddings [B, H] whose anchor is at ``position``."""
        fresh = 0 if features is None else features.shape[0]
        hidden = block
        for index, layer in enumerate(self.layers):
            mask = self._mask(index, block.shape[0], context.rows(index) + fresh)
            attended = layer.self_attn(layer.input_layernorm(hidden), features, context, index, position, mask)
            hidden = hidden + attended
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        return self.norm(hidden)

    def _mask(self, layer: int, slots: int, context_rows: int) -> mx.array | None:
        """[B, C+B] of what each slot may see, None where it may see all. Context rows end right before the anchor."""
        causal, window = self.convention.causal[layer], self.convention.windows[layer]
        if not causal and (window is None or context_rows + slots <= window):
            return None
        slot = mx.arange(slots)[:, None]
        distance = slot - (mx.arange(context_rows + slots)[None] - context_rows)  # > 0: the key is earlier
        in_block = mx.arange(context_rows + slots)[None] >= context_rows
        seen = mx.where(in_block, distance >= 0 if causal else mx.array(True), mx.array(True))
        return seen if window is None else seen & (distance < window)
