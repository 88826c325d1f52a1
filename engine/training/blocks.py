"""Packed training blocks: many blocks at random anchors of a text, run in one pass, each seeing just what inference shows it.

N texts of S tokens, A blocks of B slots in each, H hidden size, V vocabulary, K head rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from engine.drafters.dflash.convention import DraftConvention
from engine.drafters.dflash.model import DFlashModel, DraftAttention


@dataclass(frozen=True, slots=True)
class Blocks:
    """``anchors`` [N, A] positions; ``inputs`` [N, A, B] token ids, the mask token after the anchor; ``labels`` [N, A, B] what a
    slot should say; ``scored`` [N, A, B] whether it counts: from the first proposing slot up to where the answer ends;
    ``exists`` [N, A]: texts with fewer places than A repeat an anchor, unscored;
    ``said_at`` [N, A, B]: the position of the target's row that chose the label."""

    anchors: mx.array
    inputs: mx.array
    labels: mx.array
    scored: mx.array
    exists: mx.array
    said_at: mx.array


def draw_anchors(answer: np.ndarray, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ascending anchors [N, count] without replacement among the places whose own and next token an answer said, and
    [N, count] whether each exists."""
    valid = answer[:, :-1] & answer[:, 1:]
    score = np.where(valid, generator.random(valid.shape), 2.0)
    count = min(count, score.shape[1])
    place = np.argsort(score, axis=1, kind="stable")[:, :count]
    exists = np.take_along_axis(valid, place, axis=1)
    order = np.argsort(np.where(exists, place, score.shape[1]), axis=1, kind="stable")
    place, exists = np.take_along_axis(place, order, axis=1), np.take_along_axis(exists, order, axis=1)
    return np.where(exists, place, 0), exists


def pack(
    ids: np.ndarray, answer: np.ndarray, anchors: np.ndarray, exists: np.ndarray, slots: int, convention: DraftConvention
) -> Blocks:
    """Blocks at ``anchors`` [N, A] of ``ids`` [N, S]. Scoring stops at the first slot that leaves the answer."""
    length, shift = ids.shape[1], 1 - convention.first_slot
    offset = np.arange(slots)
    position = anchors[:, :, None] + offset + shift
    inside, place = position < length, np.minimum(position, length - 1)
    flat = place.reshape(len(ids), -1)
    labels = np.take_along_axis(ids, flat, axis=1).reshape(place.shape)
    scored = inside & exists[:, :, None] & np.take_along_axis(answer, flat, axis=1).reshape(place.shape)
    scored &= labels != convention.mask_token_id
    scored[:, :, : convention.first_slot] = True  # the anchor itself is not scored, but what follows it may be
    scored = np.cumprod(scored, axis=2).astype(bool)
    scored[:, :, : convention.first_slot] = False
    first = np.take_along_axis(ids, anchors, axis=1)[:, :, None]
    inputs = np.where(offset == 0, first, convention.mask_token_id)
    numbers = [mx.array(array.astype(np.int32)) for array in (anchors, inputs, labels, np.maximum(place - 1, 0))]
    return Blocks(numbers[0], numbers[1], numbers[2], mx.array(scored), mx.array(exists), numbers[3])


def attention_mask(blocks: Blocks, context: int, causal: bool, window: int | None, window_from_anchor: bool) -> mx.array:
    """[N, 1, A*B, S+A*B] of bool: a slot sees context strictly before its anchor (and within the layer's window), and of the slots
    its own block alone, all of them or up to itself. A block that does not exist sees itself, which keeps the softmax finite."""
    texts, count, slots = blocks.inputs.shape
    anchor = mx.repeat(mx.where(blocks.exists, blocks.anchors, 0), slots, axis=1)[:, :, None]  # [N, A*B, 1]
    slot = mx.tile(mx.arange(slots), (count,))
    place = mx.arange(context)[None, None]
    before = place < anchor
    if window is not None:
        reach = anchor if window_from_anchor else anchor + slot[None, :, None]
        least = reach - window if window_from_anchor else reach - window + 1
        before &= place >= least
    owner = mx.repeat(mx.arange(count), slots)
    same = owner[:, None] == owner[None]
    if causal:
        same &= slot[:, None] >= slot[None]
    same = mx.broadcast_to(same[None], (texts, *same.shape))
    return mx.concatenate([before, same], axis=2)[:, None]


def packed_rows(model: DFlashModel, inputs: mx.array, features: mx.array, blocks: Blocks) -> mx.array:
    """Final-normed rows [N, A*B, H] for embedded ``inputs`` [N, A*B, H] and context ``features`` [N, S, H] from position 0."""
    convention = model.convention
    masks: dict[tuple[bool, int | None], mx.array] = {}
    hidden = inputs
    for index, layer in enumerate(model.layers):
        sight = (convention.causal[index], convention.windows[index])
        if sight not in masks:
            masks[sight] = attention_mask(blocks, features.shape[1], *sight, convention.window_from_anchor)
        attended = _attend(layer.self_attn, layer.input_layernorm(hidden), features, blocks, masks[sight])
        hidden = hidden + attended
        hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return model.norm(hidden)


def _attend(attention: DraftAttention, rows: mx.array, features: mx.array, blocks: Blocks, mask: mx.array) -> mx.array:
    texts, width, _ = rows.shape
    queries = _rotate(attention, attention.q_norm(_heads(attention.q_proj(rows), attention.heads)), blocks)
    keys = _rotate(attention, attention.k_norm(_heads(attention.k_proj(rows), attention.kv_heads)), blocks)
    values = _heads(attention.v_proj(rows), attention.kv_heads).transpose(0, 2, 1, 3)
    context_keys = attention.k_norm(_heads(attention.k_proj(features), attention.kv_heads)).transpose(0, 2, 1, 3)
    context_values = _heads(attention.v_proj(features), attention.kv_heads).transpose(0, 2, 1, 3)
    keys = mx.concatenate([attention.rope(context_keys), keys], axis=2)
    values = mx.concatenate([context_values, values], axis=2)
    mixed = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=attention.scale, mask=mask)
    return attention.o_proj(mixed.transpose(0, 2, 1, 3).reshape(texts, width, -1))


def _heads(rows: mx.array, heads: int) -> mx.array:
    return rows.reshape(*rows.shape[:2], heads, -1)


def _rotate(attention: DraftAttention, rows: mx.array, blocks: Blocks) -> mx.array:
    """RoPE at anchor + slot of ``rows`` [N, A*B, heads, d]; returns [N, heads, A*B, d]."""
    texts, count, slots = blocks.inputs.shape
    heads, size = rows.shape[2:]
    single = rows.reshape(texts * count, slots, heads, size).transpose(0, 2, 1, 3)
    turned = attention.rope(single, offset=blocks.anchors.reshape(-1))
    turned = turned.reshape(texts, count, heads, slots, size).transpose(0, 2, 1, 3, 4)
    return turned.reshape(texts, heads, count * slots, size)
