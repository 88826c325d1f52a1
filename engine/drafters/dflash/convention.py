"""The one frozen record of how a DFlash checkpoint means its numbers.

Each of these raises no error when wrong, it only costs acceptance, so nothing else in the engine reads a draft's config.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.drafters.dflash.checks import check_numbers, check_taps, check_vocabulary
from engine.drafters.dflash.packaging import SECTION, read_packaging
from engine.errors import ModelError
from engine.models.checkpoint import Config, tensor_shapes, weight_files
from engine.targets.protocol import TargetShape

SECTIONS = (SECTION,)
REDUCED, ALLOWED = "d2t", "t2d"  # int64 [K]: the target id of draft id i is i + d2t[i]; bool [V]: which target ids those are
EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
FULL, SLIDING = "full_attention", "sliding_attention"
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Selector:
    """How DFlash 2 chooses: among the ``top_k`` likeliest of each slot, by logit times ``multiplier`` (then soft-capped at
    ``softcap``) plus a score of rank ``rank`` for each step from the token before.
    """

    rank: int
    top_k: int
    multiplier: float
    softcap: float | None


@dataclass(frozen=True, slots=True)
class DraftConvention:
    """``taps`` are 0-based decoder layers of the target, ascending, each ``target_hidden_size`` wide. ``causal`` and ``windows``
    hold one entry a draft layer; a window is None for full attention, and with ``window_from_anchor`` it is the number of
    context rows every slot may see. ``block_length`` counts the anchor and all it can propose; ``first_slot`` (0 or 1) is the
    slot that proposes the token after the anchor. ``biased`` names the attention projections with a bias.
    ``target_layers`` is the depth of its target, None where the checkpoint does not say. ``draft_vocab_size`` is the number of
    tokens of a draft that proposes from a part of the vocabulary only.
    ``embedding_rows`` and ``head_rows`` are None where the target's are borrowed. ``convolution`` is (kernel size, channels a
    group) of DFlash 2, ``quantization`` None or {"bits", "group_size"}.
    """

    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    biased: frozenset[str]
    norm_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    max_positions: int
    vocab_size: int
    target_layers: int | None
    block_length: int
    first_slot: int
    mask_token_id: int
    taps: tuple[int, ...]
    causal: tuple[bool, ...]
    windows: tuple[int | None, ...]
    window_from_anchor: bool
    quantization: dict[str, int] | None
    draft_vocab_size: int | None
    embedding_rows: int | None
    embedding_scale: float
    head_rows: int | None
    convolution: tuple[int, int] | None
    selector: Selector | None

    @classmethod
    def read(cls, folder: Path) -> DraftConvention:
        """Parses config.json and the tensor headers of a DFlash or DFlash 2 draft; ``ModelError`` for anything else."""
        packaging = read_packaging(folder)
        config = packaging.config
        shapes: Shapes = {}
        for file in weight_files(folder):
            shapes |= tensor_shapes(file)
        kinds = _layer_kinds(config, _layer_count(config, shapes))
        hidden = _length(shapes, "norm.weight", folder)
        vocab = config.need("vocab_size", int)
        convention = cls(
            hidden_size=hidden,
            target_hidden_size=config.get("target_hidden_size", int, hidden),
            intermediate_size=config.need("intermediate_size", int),
            num_layers=len(kinds),
            num_heads=config.need("num_attention_heads", int),
            num_kv_heads=config.need("num_key_value_heads", int),
            head_dim=_length(shapes, "layers.0.self_attn.q_norm.weight", folder),
            biased=_biased(shapes),
            norm_eps=config.need("rms_norm_eps", float),
            rope_theta=config.need("rope_theta", float, ("rope_parameters", *SECTIONS)),
            rope_scaling=_rope_scaling(config),
            max_positions=config.get("max_position_embeddings", int, 2**17),
            vocab_size=vocab,
            target_layers=config.get("num_target_layers", int),
            block_length=_once(config, "block_size", int) + 1 - packaging.first_slot,
            first_slot=packaging.first_slot,
            mask_token_id=_once(config, "mask_token_id", int),
            taps=_taps(config),
            causal=_causality(config, kinds),
            windows=_windows(config, kinds),
            window_from_anchor=packaging.window_from_anchor,
            quantization=config.get("quantization", dict),
            draft_vocab_size=_draft_vocabulary(shapes, vocab, folder),
            embedding_rows=_rows(shapes, EMBEDDING),
            embedding_scale=config.get("input_embedding_scale", float, 1.0, SECTIONS),
            head_rows=_rows(shapes, HEAD),
            convolution=_convolution(config) if packaging.second else None,
            selector=_selector(config) if packaging.second else None,
        )
        check_numbers(convention, config)
        check_vocabulary(convention, config)
        check_taps(convention, shapes, config)
        return convention

    def check_fits(self, target: TargetShape, draft_name: str) -> None:
        """Raises ``ModelError`` where this draft was trained for another target, naming the first number that differs."""
        mismatch = None
        if self.target_hidden_size != target.hidden_size:
            mismatch = f"hidden size {self.target_hidden_size} against {target.hidden_size}"
        elif self.hidden_size != target.hidden_size and (self.embedding_rows is None or self.head_rows is None):
            mismatch = f"hidden size {self.hidden_size} against {target.hidden_size}, without an embedding and a head of its own"
        elif self.vocab_size != target.vocab_size:
            mismatch = f"vocabulary {self.vocab_size:,} against {target.vocab_size:,}"
        elif self.target_layers is not None and self.target_layers != target.num_layers:
            mismatch = f"made for {self.target_layers} layers, this target has {target.num_layers}"
        elif self.taps[-1] >= target.num_layers or self.taps[0] < 0:
            mismatch = f"taps {list(self.taps)} in a target of {target.num_layers} layers"
        elif not 0 <= self.mask_token_id < (self.embedding_rows or target.vocab_size):
            mismatch = f"mask token {self.mask_token_id} outside a vocabulary of {self.embedding_rows or target.vocab_size:,}"
        if mismatch:
            raise ModelError(f"The draft {draft_name} belongs to another target ({mismatch}): choose the draft made for this one.")


def _length(shapes: Shapes, name: str, folder: Path) -> int:
    """The length of a vector; what the tensors say is preferred to the config, which is often a copy of the target's."""
    shape = shapes.get(name)
    if shape is None or len(shape) != 1:
        raise ModelError(f"{folder} has no vector {name}: it is not a complete DFlash draft, download it again.")
    return shape[0]


def _layer_count(config: Config, shapes: Shapes) -> int:
    """No more layers are built than there are weights for, whatever the config says."""
    layers = config.need("num_hidden_layers", int)
    if layers > len(shapes):
        raise ModelError(f"{config.path}: num_hidden_layers is {layers}, with weights for fewer: download the draft again.")
    return layers


def _rows(shapes: Shapes, name: str) -> int | None:
    return shapes[name][0] if shapes.get(name) else None


def _once(config: Config, key: str, kind: type) -> Any:
    """The value, wherever it stands; two that differ are two conventions mixed, and no guess is better than the other."""
    flat, nested = config.get(key, kind), Config(config.path, config.get(SECTION, dict, {})).get(key, kind)
    if flat is not None and nested is not None and flat != nested:
        raise ModelError(f"{config.path}: {key!r} is {flat!r} and, in {SECTION}, {nested!r}: download the draft again.")
    return config.need(key, kind, SECTIONS)


def _biased(shapes: Shapes) -> frozenset[str]:
    prefix = "layers.0.self_attn."
    fused = f"{prefix}qkv_proj.bias" in shapes
    return frozenset(
        name
        for name in ("q_proj", "k_proj", "v_proj", "o_proj")
        if f"{prefix}{name}.bias" in shapes or (fused and name != "o_proj")
    )


def _draft_vocabulary(shapes: Shapes, vocabulary: int, folder: Path) -> int | None:
    """None too where d2t is as long as the vocabulary: that is no reduction."""
    if REDUCED in shapes:
        size = _length(shapes, REDUCED, folder)
        return None if size == vocabulary else size
    if ALLOWED in shapes:
        raise ModelError(f"{folder} has {ALLOWED} without {REDUCED}: it is not a complete DFlash draft, download it again.")
    return None


def _convolution(config: Config) -> tuple[int, int]:
    return config.need("conv_kernel_size", int, SECTIONS), config.need("conv_group_size", int, SECTIONS)


def _selector(config: Config) -> Selector:
    softcap = config.get("final_logit_softcapping", float, 0.0, SECTIONS)
    return Selector(
        rank=config.need("selector_rank", int, SECTIONS),
        top_k=config.need("selector_top_k", int, SECTIONS),
        multiplier=config.get("output_multiplier", float, 1.0, SECTIONS),
        softcap=None if softcap <= 0 else softcap,
    )


def _rope_scaling(config: Config) -> dict[str, Any] | None:
    """Older configs keep it apart, newer ones beside rope_theta in rope_parameters; None for plain RoPE."""
    scaling = config.get("rope_scaling", dict) or config.get("rope_parameters", dict, {})
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return None if kind == "default" else scaling


def _taps(config: Config) -> tuple[int, ...]:
    taps = None
    if config.get("target_layer_ids", list, sections=SECTIONS) is not None:
        taps = _once(config, "target_layer_ids", list)
    else:  # z-lab's own default where the ids are absent: evenly spaced, one for each draft layer
        layers, count = config.need("num_target_layers", int), config.need("num_hidden_layers", int)
        taps = [layers // 2] if count == 1 else [round(1 + i * (layers - 4) / (count - 1)) for i in range(count)]
    if not taps or not all(type(tap) is int for tap in taps) or sorted(set(taps)) != taps:
        raise ModelError(f"{config.path}: target_layer_ids {taps} are not ascending layer numbers: download the draft again.")
    return tuple(taps)


def _layer_kinds(config: Config, layers: int) -> list[str]:
    every = SLIDING if config.get("use_swa", bool, False, SECTIONS) else FULL
    kinds = config.get("layer_types", list) or [every] * layers
    if len(kinds) != layers or not all(kind in (FULL, SLIDING) for kind in kinds):
        raise ModelError(f"{config.path}: layer_types {kinds} do not describe {layers} attention layers.")
    return kinds


def _causality(config: Config, kinds: list[str]) -> tuple[bool, ...]:
    nested = config.get(SECTION, dict, {})
    places = ((config.values, "is_causal"), (nested, "is_causal"), (nested, "causal"),
              (nested, "dflash_query_causal"), (config.values, "dflash_query_causal"))  # fmt: skip
    for place, key in places:
        value = place.get(key)
        if value is not None:
            if not isinstance(value, bool):
                raise ModelError(f"{config.path}: is_causal is {value!r}, expected bool.")
            return (value,) * len(kinds)
    return tuple(kind == SLIDING for kind in kinds)


def _windows(config: Config, kinds: list[str]) -> tuple[int | None, ...]:
    if SLIDING not in kinds:
        return (None,) * len(kinds)
    window = config.get("swa_window_size", int, sections=SECTIONS) or config.need("sliding_window", int)
    return tuple(window if kind == SLIDING else None for kind in kinds)
