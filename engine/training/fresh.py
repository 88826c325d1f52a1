"""What a new draft looks like: sizes copied from its target, taps spread over its depth, a mask token it never meets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

from engine.drafters.dflash.convention import REDUCED, DraftConvention
from engine.drafters.dflash.model import DFlashModel
from engine.errors import RequestError
from engine.models.checkpoint import Config
from engine.request import Message
from engine.targets.protocol import TargetShape
from engine.text.chat import encode_chat
from engine.training.settings import DraftPlan

TEXT = ("text_config",)
TAPS = 5
INITIAL_SPREAD = 0.02


def fresh_convention(folder: Path, shape: TargetShape, plan: DraftPlan, mask_token_id: int) -> DraftConvention:
    """A full-attention DFlash draft for the target in ``folder``. Raises ``RequestError`` for taps it does not have."""
    config = Config.read(folder)
    heads = config.need("num_attention_heads", int, TEXT)
    taps = plan.taps or spread_taps(shape.num_layers)
    if sorted(set(taps)) != list(taps) or not all(0 <= tap < shape.num_layers for tap in taps):
        raise RequestError(f"taps {list(taps)}: give ascending layer numbers from 0 to {shape.num_layers - 1}.")
    if plan.vocabulary is not None and plan.vocabulary >= shape.vocab_size:
        raise RequestError(f"vocabulary is {plan.vocabulary:,}, the model has {shape.vocab_size:,} tokens: leave it out.")
    if not 0 <= mask_token_id < shape.vocab_size:
        raise RequestError(f"mask-token is {mask_token_id}: the model has the tokens 0 to {shape.vocab_size - 1:,}.")
    return DraftConvention(
        hidden_size=shape.hidden_size,
        target_hidden_size=shape.hidden_size,
        intermediate_size=config.get("intermediate_size", int, 3 * shape.hidden_size, TEXT),
        num_layers=plan.layers,
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads", int, heads, TEXT),
        head_dim=config.get("head_dim", int, shape.hidden_size // heads, TEXT),
        biased=frozenset(),
        norm_eps=config.get("rms_norm_eps", float, 1e-6, TEXT),
        rope_theta=config.get("rope_theta", float, 10000.0, (*TEXT, "rope_parameters")),
        rope_scaling=None,
        max_positions=shape.context_length,
        vocab_size=shape.vocab_size,
        target_layers=shape.num_layers,
        block_length=plan.block_length,
        first_slot=1,
        mask_token_id=mask_token_id,
        taps=tuple(taps),
        causal=(False,) * plan.layers,
        windows=(None,) * plan.layers,
        window_from_anchor=False,
        quantization=None,
        draft_vocab_size=plan.vocabulary,
        embedding_rows=None,
        embedding_scale=1.0,
        head_rows=None,
        convolution=None,
        selector=None,
    )


def spread_taps(layers: int) -> tuple[int, ...]:
    """z-lab's rule: evenly from the second layer to the third from the end."""
    count = min(TAPS, layers)
    if count == 1 or layers < 4:
        return tuple(range(count))
    return tuple(sorted({round(1 + index * (layers - 4) / (count - 1)) for index in range(count)}))


def fresh_draft(convention: DraftConvention, counts: np.ndarray, stop_ids: frozenset[int], seed: int) -> DFlashModel:
    """A draft with random matrices and norms of 1. A reduced vocabulary takes the tokens most often said by ``counts`` [V]."""
    model = DFlashModel(convention)
    key = mx.random.key(seed)
    fresh = []
    for name, value in tree_flatten(model.parameters()):
        if mx.issubdtype(value.dtype, mx.floating):
            key, own = mx.random.split(key)
            value = INITIAL_SPREAD * mx.random.normal(value.shape, key=own) if value.ndim == 2 else mx.ones(value.shape)
        fresh.append((name, value))
    model.update(tree_unflatten(fresh))
    if convention.draft_vocab_size is not None:
        ids = frequent(counts, convention.draft_vocab_size, stop_ids, convention.mask_token_id)
        model[REDUCED] = mx.array(ids - np.arange(len(ids)))
    mx.eval(model.parameters())
    return model


def frequent(counts: np.ndarray, size: int, always: frozenset[int], never: int) -> np.ndarray:
    """The ``size`` most frequent ids, ascending, int64; ties go to the lower id."""
    score = counts.astype(np.float64)
    score[sorted(always)] = np.inf
    score[never] = -1
    return np.sort(np.argsort(-score, kind="stable")[:size]).astype(np.int64)


def mask_token(tokenizer: Any, shape: TargetShape, stop_ids: frozenset[int]) -> int:
    """A token id that no text holds: a row past the tokenizer, else a special token that the chat template does not write.
    Raises ``RequestError`` where the vocabulary has none to spare."""
    known = len(tokenizer)
    if known < shape.vocab_size:
        return known
    template = set(
        encode_chat(tokenizer, [Message("system", "a"), Message("user", "a"), Message("assistant", "a"), Message("user", "a")])
    )
    used = template | stop_ids | {tokenizer.eos_token_id, tokenizer.bos_token_id}
    spare = sorted(set(tokenizer.all_special_ids) - used)
    if not spare:
        raise RequestError("This model's vocabulary has no token to spare as mask: give one with --mask-token.")
    return spare[-1]
