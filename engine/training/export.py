"""Writes a trained draft as a folder in z-lab's layout, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from engine.drafters.dflash.convention import FULL, REDUCED, SLIDING, DraftConvention
from engine.drafters.dflash.model import DFlashModel
from engine.errors import RequestError, SlipstreamError


def why_not_exportable(convention: DraftConvention) -> str | None:
    """What in a draft this layout, or the trainer, does not know, as the end of a sentence that begins with the draft."""
    reasons = {
        "is a DFlash 2 draft": convention.convolution is not None or convention.selector is not None,
        "has an embedding or a head of its own": convention.embedding_rows is not None or convention.head_rows is not None,
        "has attention biases": bool(convention.biased),
        "has some layers causal and others not": len(set(convention.causal)) > 1 and convention.causal != _usual(convention),
        "has windows of several sizes": len({window for window in convention.windows if window is not None}) > 1,
        "is no exact DFlash draft of z-lab's kind": convention.window_from_anchor or convention.first_slot != 1,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def check_exportable(convention: DraftConvention) -> None:
    """Raises ``RequestError`` for a draft that cannot be continued from."""
    reason = why_not_exportable(convention)
    if reason is not None:
        raise RequestError(f"The draft to continue from {reason}: begin a new one without --from.")


def config_of(convention: DraftConvention) -> dict[str, Any]:
    """The config.json that ``DraftConvention.read`` turns back into ``convention``."""
    c = convention
    config: dict[str, Any] = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": c.hidden_size,
        "num_hidden_layers": c.num_layers,
        "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads,
        "head_dim": c.head_dim,
        "intermediate_size": c.intermediate_size,
        "vocab_size": c.vocab_size,
        "rms_norm_eps": c.norm_eps,
        "rope_theta": c.rope_theta,
        "max_position_embeddings": c.max_positions,
        "block_size": c.block_length,
        "layer_types": [FULL if window is None else SLIDING for window in c.windows],
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "dflash_config": {"target_layer_ids": list(c.taps), "mask_token_id": c.mask_token_id},
    }
    windows = [window for window in c.windows if window is not None]
    optional = {
        "num_target_layers": c.target_layers,
        "rope_scaling": c.rope_scaling,
        "sliding_window": windows[0] if windows else None,
        "draft_vocab_size": c.draft_vocab_size,
    }
    if c.causal != _usual(c):
        config["is_causal"] = c.causal[0]
    if c.embedding_scale != 1:
        config["dflash_config"]["input_embedding_scale"] = c.embedding_scale
    return config | {name: value for name, value in optional.items() if value is not None}


def _usual(convention: DraftConvention) -> tuple[bool, ...]:
    """Causality where the config says nothing: that of layers with a window."""
    return tuple(window is not None for window in convention.windows)


def export_draft(model: DFlashModel, parameters: dict[str, mx.array], folder: Path) -> None:
    """``parameters`` by name in bf16, with the model's own d2t. An interrupted export leaves what was there before.

    The config goes first: it is the same for every export of a run, so any mix of the two files is a whole draft.
    """
    weights = {name: value.astype(mx.bfloat16) for name, value in parameters.items()}
    if REDUCED in model:
        weights[REDUCED] = model[REDUCED].astype(mx.int64)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(config_of(model.convention), indent=1) + "\n"
        replace_file(folder / "config.json", lambda part: part.write_text(text, encoding="utf-8"))
        replace_file(folder / "model.safetensors", lambda part: mx.save_safetensors(str(part), weights, {"format": "mlx"}))
    except (OSError, RuntimeError) as error:  # MLX reports a full disk as RuntimeError
        raise SlipstreamError(f"The draft cannot be written to {folder} ({error}): make room or give another folder.") from error


def replace_file(path: Path, write: Any) -> None:
    """``write`` fills a file beside ``path``, which then takes its place, synced to disk."""
    part = path.with_name(f"part-{path.name}")
    try:
        write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def trainable(model: DFlashModel) -> dict[str, mx.array]:
    """The floating-point parameters by name."""
    return {name: value for name, value in tree_flatten(model.parameters()) if mx.issubdtype(value.dtype, mx.floating)}
