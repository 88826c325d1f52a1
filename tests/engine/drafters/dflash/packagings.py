"""Tiny random drafts in every packaging, each with the z-lab names and numbers that it must come out as."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from tests.engine.tiny import draft_config, draft_weights, target_config

FULL, SLIDING = "full_attention", "sliding_attention"
GROUP, RANK, KERNEL = 8, 4, 3
KEPT = tuple(range(1, 160, 3))  # the target ids of a reduced vocabulary
LAYER_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
              "vocab_size", "rms_norm_eps", "max_position_embeddings", "layer_types", "sliding_window")  # fmt: skip


@dataclass
class Packed:
    """``config`` and ``files`` are what lies on disk; ``weights`` are the same numbers under z-lab's names. The rest is what the
    packaging means. ``ids``: target ids of the rows a head has.
    """

    config: dict[str, Any]
    files: dict[str, mx.array]
    weights: dict[str, mx.array]
    causal: tuple[bool, ...] = (False, False)
    windows: tuple[int | None, ...] = (None, None)
    from_anchor: bool = False
    first_slot: int = 1
    ids: tuple[int, ...] | None = None
    second: bool = False
    scale: dict[str, float] = field(default_factory=lambda: {"multiplier": 1.0, "softcap": 0.0})

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        mx.save_safetensors(str(folder / "model.safetensors"), self.files)
        (folder / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        return folder


def random(seed: int, *shape: int) -> mx.array:
    return mx.random.normal(shape, key=mx.random.key(seed)) * (1.6 / shape[-1] ** 0.5)


def second_weights(config: dict[str, Any]) -> dict[str, mx.array]:
    """What DFlash 2 has beyond the first, strong enough to change every choice."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    found: dict[str, mx.array] = {}
    for layer in range(config["num_hidden_layers"]):
        for index, name in enumerate(("attention_conv", "mlp_conv")):
            prefix, seed = f"layers.{layer}.{name}.", 100 + 10 * layer + 3 * index
            found[prefix + "base_kernel"] = mx.random.normal((2, KERNEL, hidden), key=mx.random.key(seed)) * 0.4
            found[prefix + "kernel_projection.weight"] = random(seed + 1, 2 * KERNEL * hidden // GROUP, hidden) * 0.3
    found["candidate_selector.hidden_projection.weight"] = random(90, RANK, hidden)
    for index, name in enumerate(("predecessor", "successor")):
        found[f"candidate_selector.{name}_codebook"] = mx.random.normal((vocab, RANK), key=mx.random.key(91 + index)) * 2
    return found


def speculators(zlab: dict[str, Any], algorithm: str = "dflash", tokens: int | None = None, **changes: Any) -> dict[str, Any]:
    """The config.json of the draft ``zlab`` in speculators packaging, written from what is known of that format."""
    layer = {key: zlab[key] for key in LAYER_KEYS if key in zlab}
    layer |= {"model_type": "qwen3", "rope_parameters": {"rope_theta": zlab["rope_theta"], "rope_type": "default"}}
    layer["layer_types"] = zlab.get("layer_types", [FULL] * zlab["num_hidden_layers"])
    config = {
        "architectures": ["DFlashSpeculator"],
        "speculators_model_type": algorithm,
        "speculators_version": "0.5.0",
        "speculators_config": {
            "algorithm": algorithm,
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {"proposal_type": "greedy", "speculative_tokens": zlab["block_size"] - 1 if tokens is None else tokens}
            ],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "someone/target"},
        },
        "transformer_layer_config": layer,
        "draft_vocab_size": zlab["vocab_size"],
        "block_size": zlab["block_size"],
        "target_hidden_size": None,
        "aux_hidden_state_layer_ids": [tap + 1 for tap in zlab["dflash_config"]["target_layer_ids"]],
        "mask_token_id": zlab["dflash_config"]["mask_token_id"],
        "sliding_window_non_causal": False,
        **changes,
    }
    return {key: value for key, value in config.items() if value is not ...}


def fused(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Queries, keys and values of a layer in one tensor."""
    found = {name: value for name, value in weights.items() if not any(f".{part}_proj." in name for part in "qkv")}
    for name in [name for name in weights if ".q_proj." in name]:
        found[name.replace("q_proj", "qkv_proj")] = mx.concatenate(
            [weights[name.replace("q_proj", f"{part}_proj")] for part in "qkv"], axis=0
        )
    return found


def offsets(ids: tuple[int, ...]) -> mx.array:
    return mx.array([target - own for own, target in enumerate(ids)], dtype=mx.int64)


def own_vocabulary(config: dict[str, Any], head_rows: int, embedding_rows: int | None = None) -> dict[str, mx.array]:
    rows = embedding_rows or config["vocab_size"]
    return {"embed_tokens.weight": random(80, rows, config["hidden_size"]) * 4, "lm_head.weight": random(81, head_rows, 32)}


def flat(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(config)
    return Packed(config, weights, weights)


def specforge(vocab: int = 160) -> Packed:
    """Keys of a copied Qwen config that mean nothing here, yarn, everything full."""
    config = draft_config(
        target_config(vocab_size=vocab),
        use_sliding_window=False,
        sliding_window=None,
        max_window_layers=2,
        layer_types=[FULL] * 2,
        use_cache=True,
        attention_bias=False,
        auto_map={"AutoModel": "dflash.DFlashDraftModel"},
        rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.25},
        dflash_config={"target_layer_ids": [1, 3], "mask_token_id": 7, "projector_type": "dflash"},
        mask_token_id=7,
        partial_rotary_factor=0.25,
    )
    weights = draft_weights(config)
    return Packed(config, weights, weights)


def shifted_labels(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab))
    config["dflash_config"] = config["dflash_config"] | {"shift_label": True}
    weights = draft_weights(config)
    return Packed(config, weights, weights, first_slot=0)


def deepspec(vocab: int = 160) -> Packed:
    """A copy of the target's config under the name of another kind of draft, without its heads; samples from the anchor."""
    config = draft_config(target_config(vocab_size=vocab), architectures=["Qwen3DSparkModel"], dflash_config=None)
    config |= {"target_layer_ids": [1, 2], "mask_token_id": 6, "markov_rank": 0, "enable_confidence_head": False, "num_anchors": 9}
    weights = draft_weights(config | {"dflash_config": {"target_layer_ids": [1, 2]}}) | own_vocabulary(config, vocab)
    return Packed(config, weights, weights, first_slot=0)


def fused_projections(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(config)
    for layer in range(2):
        for part, rows in (("q", 32), ("k", 16), ("v", 16)):
            weights[f"layers.{layer}.self_attn.{part}_proj.bias"] = 0.2 * mx.random.normal((rows,), key=mx.random.key(rows + layer))
    return Packed(config, fused(weights), weights)


def biased_output(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(config)
    weights |= {f"layers.{layer}.self_attn.o_proj.bias": random(60 + layer, 32) for layer in range(2)}
    return Packed(config, weights, weights)


def own_embedding_and_head(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(config) | own_vocabulary(config, vocab)
    return Packed(config, weights, weights)


def own_padded_embedding_and_head(vocab: int = 160) -> Packed:
    """The mask token lies past the vocabulary, in a row that only this embedding has."""
    config = draft_config(target_config(vocab_size=vocab), dflash_config={"target_layer_ids": [0, 2], "mask_token_id": vocab + 5})
    weights = draft_weights(config) | own_vocabulary(config, vocab + 10, vocab + 8)
    return Packed(config, weights, weights)


def sliding(vocab: int = 160) -> Packed:
    config = draft_config(target_config(vocab_size=vocab), layer_types=[SLIDING, FULL], sliding_window=9)
    weights = draft_weights(config)
    return Packed(config, weights, weights, causal=(True, False), windows=(9, None))


def speculators_plain(vocab: int = 160) -> Packed:
    zlab = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(zlab)
    return Packed(speculators(zlab), weights, weights, from_anchor=True)


def speculators_reduced(vocab: int = 160) -> Packed:
    """Own head of a reduced vocabulary, own embedding, both maps, and what training leaves behind."""
    zlab = draft_config(target_config(vocab_size=vocab))
    weights = draft_weights(zlab) | own_vocabulary(zlab, len(KEPT))
    allowed = mx.array([token in KEPT for token in range(vocab)])
    left_behind = {"verifier_norm.weight": mx.ones((32,)), "verifier_lm_head.weight": mx.ones((len(KEPT), 32))}
    files = weights | {"d2t": offsets(KEPT), "t2d": allowed} | left_behind
    return Packed(speculators(zlab, draft_vocab_size=len(KEPT)), files, weights, ids=KEPT, from_anchor=True)


def speculators_sliding(vocab: int = 160) -> Packed:
    zlab = draft_config(target_config(vocab_size=vocab), layer_types=[SLIDING, FULL], sliding_window=9)
    weights = draft_weights(zlab)
    return Packed(speculators(zlab), weights, weights, causal=(True, False), windows=(9, None), from_anchor=True)


def speculators_sliding_both_ways(vocab: int = 160) -> Packed:
    """Samples from the anchor too."""
    zlab = draft_config(target_config(vocab_size=vocab), layer_types=[SLIDING, SLIDING], sliding_window=9)
    weights = draft_weights(zlab)
    config = speculators(zlab, tokens=6, sliding_window_non_causal=True, sample_from_anchor=True)
    return Packed(config, weights, weights, windows=(9, 9), from_anchor=True, first_slot=0)


def second(vocab: int = 160) -> Packed:
    section = {"target_layer_ids": [0, 2], "mask_token_id": 5, "block_size": 6, "selector_rank": RANK, "selector_top_k": 5,
               "conv_kernel_size": KERNEL, "conv_group_size": GROUP, "output_multiplier": 0.7,
               "final_logit_softcapping": 3.0}  # fmt: skip
    config = draft_config(
        target_config(vocab_size=vocab),
        architectures=["DFlash2DraftModel"],
        block_size=None,
        is_causal=False,
        layer_types=[SLIDING] * 2,
        sliding_window=9,
        rope_theta=None,
        rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
        dflash_config=section,
    )
    weights = draft_weights(config) | second_weights(config)
    scale = {"multiplier": 0.7, "softcap": 3.0}
    return Packed(config, weights, weights, windows=(9, 9), second=True, scale=scale)


def speculators_second(vocab: int = 160) -> Packed:
    zlab = draft_config(target_config(vocab_size=vocab), layer_types=[SLIDING] * 2, sliding_window=9)
    weights = draft_weights(zlab) | second_weights(zlab)
    settings = {"conv_kernel_size": KERNEL, "conv_group_size": GROUP, "selector_rank": RANK, "selector_top_k": 5}
    config = speculators(zlab, "dflash2", architectures=["DFlash2DraftModel"], sliding_window_non_causal=..., **settings)
    files = {f"{name}.weight" if name.endswith("codebook") else name: value for name, value in weights.items()}
    return Packed(config, files, weights, windows=(9, 9), from_anchor=True, second=True)


PACKAGINGS = {
    make.__name__.replace("_", " "): make
    for make in (
        flat,
        specforge,
        shifted_labels,
        deepspec,
        fused_projections,
        biased_output,
        own_embedding_and_head,
        own_padded_embedding_and_head,
        sliding,
        speculators_plain,
        speculators_reduced,
        speculators_sliding,
        speculators_sliding_both_ways,
        second,
        speculators_second,
    )
}


def wide(array: mx.array) -> np.ndarray:
    return np.array(array.astype(mx.float32)).astype(np.float64)
