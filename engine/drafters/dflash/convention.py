"""The one frozen record of how a DFlash checkpoint means its numbers.

Each of these raises no error when wrong, it only costs acceptance, so nothing else in the engine reads a draft's config.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.models.checkpoint import Config, tensor_shapes, weight_files
from engine.targets.protocol import TargetShape

SECTION = ("dflash_config",)
ARCHITECTURE = "DFlashDraftModel"
REDUCED = "d2t"  # int64 [K]: the target id of draft id i is i + d2t[i]


@dataclass(frozen=True, slots=True)
class DraftConvention:
    """``taps`` are 0-based decoder layers of the target, ascending. ``causal`` and ``windows`` hold one entry a draft layer;
    a window is None for full attention. ``block_length`` counts the anchor. ``quantization`` is None or {"bits", "group_size"}.
    ``draft_vocab_size`` is the length of the ``d2t`` tensor of a draft that proposes from a part of the vocabulary only.
    """

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    max_positions: int
    vocab_size: int
    block_length: int
    mask_token_id: int
    taps: tuple[int, ...]
    causal: tuple[bool, ...]
    windows: tuple[int | None, ...]
    quantization: dict[str, int] | None
    draft_vocab_size: int | None

    @classmethod
    def read(cls, folder: Path) -> DraftConvention:
        """Parses config.json and the tensor headers of a z-lab DFlash v1 checkpoint; ``ModelError`` for any other."""
        config = Config.read(folder)
        _check_kind(config)
        shapes: dict[str, tuple[int, ...]] = {}
        for file in weight_files(folder):
            shapes |= tensor_shapes(file)
        layers = config.need("num_hidden_layers", int)
        kinds = _layer_kinds(config, layers)
        convention = cls(
            hidden_size=_length(shapes, "norm.weight", folder),
            intermediate_size=config.need("intermediate_size", int),
            num_layers=layers,
            num_heads=config.need("num_attention_heads", int),
            num_kv_heads=config.need("num_key_value_heads", int),
            head_dim=_length(shapes, "layers.0.self_attn.q_norm.weight", folder),
            norm_eps=config.need("rms_norm_eps", float),
            rope_theta=config.need("rope_theta", float, ("rope_parameters", *SECTION)),
            rope_scaling=_rope_scaling(config),
            max_positions=config.get("max_position_embeddings", int, 2**17),
            vocab_size=config.need("vocab_size", int),
            block_length=config.need("block_size", int, SECTION),
            mask_token_id=config.need("mask_token_id", int, SECTION),
            taps=_taps(config),
            causal=_causality(config, kinds),
            windows=_windows(config, kinds),
            quantization=config.get("quantization", dict),
            draft_vocab_size=_length(shapes, REDUCED, folder) if REDUCED in shapes else None,
        )
        _check_numbers(convention, config)
        return convention

    def check_fits(self, target: TargetShape, draft_name: str) -> None:
        """Raises ``ModelError`` where this draft was trained for another target, naming the first number that differs."""
        mismatch = None
        if self.hidden_size != target.hidden_size:
            mismatch = f"hidden size {self.hidden_size} against {target.hidden_size}"
        elif self.vocab_size != target.vocab_size:
            mismatch = f"vocabulary {self.vocab_size:,} against {target.vocab_size:,}"
        elif self.taps[-1] >= target.num_layers or self.taps[0] < 0:
            mismatch = f"taps {list(self.taps)} in a target of {target.num_layers} layers"
        elif not 0 <= self.mask_token_id < target.vocab_size:
            mismatch = f"mask token {self.mask_token_id} outside a vocabulary of {target.vocab_size:,}"
        if mismatch:
            raise ModelError(f"The draft {draft_name} belongs to another target ({mismatch}): choose the draft made for this one.")


def _check_kind(config: Config) -> None:
    names, section = config.get("architectures", list, []), config.get(SECTION[0], dict)
    if ARCHITECTURE in names or (not names and section is not None):
        return
    found = ", ".join(map(str, names)) or config.get("model_type", str) or "unknown"
    if "speculators_model_type" in config.values or "speculators_config" in config.values:
        found += ", packaged by speculators"
    raise ModelError(f"{config.path.parent} is not a DFlash draft (found {found}): use a checkpoint of kind {ARCHITECTURE}.")


def _length(shapes: dict[str, tuple[int, ...]], name: str, folder: Path) -> int:
    """The length of a vector; what the tensors say is preferred to the config, which is often a copy of the target's."""
    shape = shapes.get(name)
    if shape is None or len(shape) != 1:
        raise ModelError(f"{folder} has no vector {name}: it is not a complete DFlash draft, download it again.")
    return shape[0]


def _check_numbers(convention: DraftConvention, config: Config) -> None:
    """Sizes that no tensor's shape would contradict, or only with a riddle for a message."""
    c = convention
    problem = None
    if c.block_length < 2:
        problem = f"block_size is {c.block_length}, which leaves no slot to propose in"
    elif min(c.num_layers, c.num_heads, c.num_kv_heads, c.intermediate_size) < 1 or c.num_heads % c.num_kv_heads:
        problem = f"{c.num_heads} attention heads over {c.num_kv_heads} key/value heads in {c.num_layers} layers cannot be"
    elif any(window is not None and window < 1 for window in c.windows):
        problem = "sliding_window is below 1"
    if problem:
        raise ModelError(f"{config.path}: {problem}: download the draft again.")


def _rope_scaling(config: Config) -> dict[str, Any] | None:
    """Older configs keep it apart, newer ones beside rope_theta in rope_parameters; None for plain RoPE."""
    scaling = config.get("rope_scaling", dict) or config.get("rope_parameters", dict, {})
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return None if kind == "default" else scaling


def _taps(config: Config) -> tuple[int, ...]:
    taps = config.get("target_layer_ids", list, sections=SECTION)
    if taps is None:  # z-lab's own default where the ids are absent: evenly spaced, one for each draft layer
        layers, count = config.need("num_target_layers", int), config.need("num_hidden_layers", int)
        taps = [layers // 2] if count == 1 else [round(1 + i * (layers - 4) / (count - 1)) for i in range(count)]
    if not taps or not all(type(tap) is int for tap in taps) or sorted(set(taps)) != taps:
        raise ModelError(f"{config.path}: target_layer_ids {taps} are not ascending layer numbers: download the draft again.")
    return tuple(taps)


def _layer_kinds(config: Config, layers: int) -> list[str]:
    kinds = config.get("layer_types", list) or ["full_attention"] * layers
    if len(kinds) != layers or not all(kind in ("full_attention", "sliding_attention") for kind in kinds):
        raise ModelError(f"{config.path}: layer_types {kinds} do not describe {layers} attention layers.")
    return kinds


def _causality(config: Config, kinds: list[str]) -> tuple[bool, ...]:
    nested = config.get("dflash_config", dict, {})
    for value in (config.values.get("is_causal"), nested.get("is_causal"), nested.get("causal")):
        if value is not None:
            if not isinstance(value, bool):
                raise ModelError(f"{config.path}: is_causal is {value!r}, expected bool.")
            return (value,) * len(kinds)
    return tuple(kind == "sliding_attention" for kind in kinds)


def _windows(config: Config, kinds: list[str]) -> tuple[int | None, ...]:
    if "sliding_attention" not in kinds:
        return (None,) * len(kinds)
    window = config.need("sliding_window", int)
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
