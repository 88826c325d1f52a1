"""The DFlash draft, first and second, as one MLX module; parameter names are z-lab's.

B block slots, C context rows, n new context rows, H hidden size, A heads, G key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.rope_utils import initialize_rope

from engine.drafters.dflash.context import ContextCache
from engine.drafters.dflash.convention import DraftConvention
from engine.drafters.dflash.convolution import GroupedConvolution
from engine.drafters.dflash.selector import CandidateSelector


class DraftAttention(nn.Module):
    """Queries from the block only; keys and values from context rows, then block rows, through the same projections."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        c = convention
        self.heads, self.kv_heads, self.scale = c.num_heads, c.num_kv_heads, c.head_dim**-0.5
        queries, keys = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, queries, bias="q_proj" in c.biased)
        self.k_proj = nn.Linear(c.hidden_size, keys, bias="k_proj" in c.biased)
        self.v_proj = nn.Linear(c.hidden_size, keys, bias="v_proj" in c.biased)
        self.o_proj = nn.Linear(queries, c.hidden_size, bias="o_proj" in c.biased)
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
        keys, values = context.extend(layer, keys, values, position - fresh, fresh)
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
    """One pre-norm layer. Context features pass neither its input norm nor its MLP, nor DFlash 2's convolutions."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        hidden = convention.hidden_size
        self.self_attn = DraftAttention(convention)
        self.mlp = DraftMLP(convention)
        self.input_layernorm = nn.RMSNorm(hidden, eps=convention.norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(hidden, eps=convention.norm_eps)
        self.convolved = convention.convolution is not None
        if convention.convolution is not None:
            self.attention_conv = GroupedConvolution(hidden, *convention.convolution)
            self.mlp_conv = GroupedConvolution(hidden, *convention.convolution)

    def __call__(self, hidden: mx.array, attend: Callable[[mx.array], mx.array]) -> mx.array:
        """Rows [B, H]; ``attend`` is this layer's attention with everything but the block given."""
        if not self.convolved:
            hidden = hidden + attend(self.input_layernorm(hidden))
            return hidden + self.mlp(self.post_attention_layernorm(hidden))
        hidden = hidden + self.attention_conv.around(attend, self.input_layernorm(hidden))
        return hidden + self.mlp_conv.around(self.mlp, self.post_attention_layernorm(hidden))


class DFlashModel(nn.Module):
    """fc and hidden_norm turn taps into context features; the layers turn a block of embeddings into final-normed rows."""

    def __init__(self, convention: DraftConvention):
        super().__init__()
        c = self.convention = convention
        self.fc = nn.Linear(len(c.taps) * c.target_hidden_size, c.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(c.hidden_size, eps=c.norm_eps)
        self.layers = [DraftLayer(c) for _ in range(c.num_layers)]
        self.norm = nn.RMSNorm(c.hidden_size, eps=c.norm_eps)
        if c.draft_vocab_size is not None:
            self.d2t = mx.zeros((c.draft_vocab_size,), dtype=mx.int64)
        if c.embedding_rows is not None:
            self.embed_tokens = nn.Embedding(c.embedding_rows, c.hidden_size)
        if c.head_rows is not None:
            self.lm_head = nn.Linear(c.hidden_size, c.head_rows, bias=False)
        if c.selector is not None:
            self.candidate_selector = CandidateSelector(c.selector, c.hidden_size, c.vocab_size)

    def target_ids(self) -> mx.array | None:
        """The vocabulary rows [K] this draft chooses from; None: all of them."""
        return mx.arange(self.d2t.shape[0]) + self.d2t if "d2t" in self else None

    def make_context(self) -> ContextCache:
        """An empty context. A window W reaches W rows back from the anchor, or from each slot: then W-1 lie before the anchor."""
        less = 0 if self.convention.window_from_anchor else 1
        return ContextCache([None if window is None else window - less for window in self.convention.windows])

    @property
    def dtype(self) -> mx.Dtype:
        """The type of the draft's numbers. What comes in from a target of another type is cast to it: two 16-bit types would give
        fp32 together, and every product would widen its weights first."""
        return self.norm.weight.dtype

    def features(self, taps: mx.array) -> mx.array:
        """Context features [L, H] of ``taps`` [L, n*H]. Never summed in fp16: the first token's activations overflow it."""
        wide = mx.float32 if taps.dtype == mx.float16 else taps.dtype
        return self.hidden_norm(self.fc(taps.astype(wide))).astype(self.dtype)

    def add_context(self, features: mx.array, context: ContextCache, position: int) -> None:
        """Puts ``features`` [L, H], the first at ``position``, into every layer's context."""
        for index, layer in enumerate(self.layers):
            unseen = context.unseen(index, features.shape[0])
            if unseen == features.shape[0]:
                continue  # a window of one token sees no context at all
            rows = features[unseen:] if unseen else features
            keys, values = layer.self_attn.keys_values(rows, position + unseen)
            context.extend(index, keys, values, position + unseen, rows.shape[0])

    def __call__(self, block: mx.array, features: mx.array | None, context: ContextCache, position: int) -> mx.array:
        """Final-normed rows [B, H] for block embeddings [B, H] whose anchor is at ``position``."""
        fresh = 0 if features is None else features.shape[0]
        masks: dict[tuple[bool, int | None, int], mx.array | None] = {}
        hidden = block
        for index, layer in enumerate(self.layers):
            sight = (self.convention.causal[index], self.convention.windows[index], context.rows(index, fresh))
            if sight not in masks:
                masks[sight] = self._mask(block.shape[0], *sight)
            attend = partial(layer.self_attn, features=features, context=context, layer=index, position=position, mask=masks[sight])
            hidden = layer(hidden, attend)
        return self.norm(hidden)

    def _mask(self, slots: int, causal: bool, window: int | None, rows: int) -> mx.array | None:
        """[B, C+B] of what each slot may see, None where it may see all. The context rows end right before the anchor.

        The window bounds the context alone: a block is seen whole, or up to the slot itself.
        """
        if window is not None and (self.convention.window_from_anchor or rows + slots <= window):
            window = None  # every slot sees all the rows there are
        if not causal and window is None:
            return None
        slot, place = mx.arange(slots)[:, None], mx.arange(-rows, slots)[None]  # both counted from the anchor
        in_block = place >= 0
        context = mx.array(True) if window is None else slot - place < window
        return mx.where(in_block, slot >= place if causal else mx.array(True), context)
