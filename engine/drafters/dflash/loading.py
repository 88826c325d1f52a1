"""Loads a DFlash checkpoint strictly: every tensor has its place and every place its tensor."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import dequantize_model

from engine.drafters.dflash.convention import REDUCED, DraftConvention
from engine.drafters.dflash.model import DFlashModel
from engine.drafters.dflash.weights import read_weights
from engine.errors import ModelError
from engine.kernels.expand import expand
from engine.targets.protocol import TargetShape

BIT_WIDTHS, GROUP_SIZES = (2, 3, 4, 5, 6, 8), (32, 64, 128)  # MLX's affine quantisation


def load_draft(folder: Path, target: TargetShape, dtype: mx.Dtype | None, bits: int | None = None) -> DFlashModel:
    """The draft in ``folder``, checked against ``target``.

    ``dtype`` expands a quantised draft and casts everything; None keeps what the checkpoint holds. ``bits`` then quantises every
    projection. Raises ``ModelError``.
    """
    model = open_draft(folder, target)
    if dtype is not None:
        model = expand(model, dtype)
    if bits is not None:
        model = requantised(model, bits, folder)
    mx.eval(model.parameters())
    return model


def open_draft(folder: Path, target: TargetShape) -> DFlashModel:
    """The draft in ``folder`` checked as ``load_draft`` does, its weights not read yet. Raises ``ModelError``."""
    convention = DraftConvention.read(folder)
    convention.check_fits(target, folder.name)
    weights = read_weights(folder, convention)
    model = _empty_model(convention, folder)
    if convention.quantization is not None:
        _quantize_like(model, convention.quantization, weights, folder)
    _check_names(model, weights, folder)
    try:
        model.load_weights(list(weights.items()))
    except ValueError as error:
        raise ModelError(f"The draft in {folder} has a tensor of the wrong shape ({error}): download it again.") from error
    return model


def requantised(model: DFlashModel, bits: int, folder: Path) -> DFlashModel:
    """Every projection in ``bits``, whatever it was stored in. Raises ``ModelError`` where its rows do not divide into groups."""
    if model.convention.quantization is not None:
        model = dequantize_model(model)
    widths = {module.weight.shape[-1] for module in model.modules() if isinstance(module, nn.Linear)}
    group = next((group for group in (64, 32) if all(width % group == 0 for width in widths)), None)
    if group is None:
        found = ", ".join(map(str, sorted(widths)))
        raise ModelError(
            f"The draft in {folder} cannot be kept in {bits} bits: its rows of {found} values do not divide into groups of 32. "
            "Load it without draft_bits."
        )
    nn.quantize(model, group_size=group, bits=bits, class_predicate=lambda _, module: isinstance(module, nn.Linear))
    return model


def _empty_model(convention: DraftConvention, folder: Path) -> DFlashModel:
    try:
        return DFlashModel(convention)
    except OverflowError as error:
        raise ModelError(f"{folder / 'config.json'}: a size there cannot be ({error}): download the draft again.") from error
    except Exception as error:  # building RoPE raises whatever the settings lead to
        reason = f"lacks {error}" if isinstance(error, KeyError) else (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{folder / 'config.json'}: the position scaling cannot be used ({reason}): choose another draft."
        ) from error


def _quantize_like(model: DFlashModel, settings: dict[str, int], weights: dict[str, mx.array], folder: Path) -> None:
    bits, group = settings.get("bits"), settings.get("group_size")
    if not isinstance(bits, int) or not isinstance(group, int):
        raise ModelError(f"{folder / 'config.json'}: quantization needs whole numbers for bits and group_size.")
    wrong = f"{folder / 'config.json'}: {bits} bits in groups of {group} cannot be used: choose another draft."
    if group not in GROUP_SIZES or bits not in BIT_WIDTHS:  # MLX ends the process on a group of 0
        raise ModelError(wrong)
    try:
        nn.quantize(model, group_size=group, bits=bits, class_predicate=lambda path, _: f"{path}.scales" in weights)
    except ValueError as error:  # rows that do not divide into groups
        raise ModelError(wrong) from error


def _check_names(model: DFlashModel, weights: dict[str, mx.array], folder: Path) -> None:
    expected = {name for name, _ in tree_flatten(model.parameters())}
    missing, unexpected = sorted(expected - weights.keys()), sorted(weights.keys() - expected)
    if missing or unexpected:
        parts = [f"lacks {', '.join(missing[:4])}"] if missing else []
        parts += [f"has unknown {', '.join(unexpected[:4])}"] if unexpected else []
        raise ModelError(f"The draft in {folder} {' and '.join(parts)}: it is not a complete DFlash checkpoint.")
    # MLX reads 8-bit floats as bytes and would multiply by those without a word.
    packed = {
        f"{name.removesuffix('scales')}{part}" for name in weights if name.endswith(".scales") for part in ("weight", "scales")
    }
    foreign = [name for name, array in weights.items() if not mx.issubdtype(array.dtype, mx.floating)]
    foreign = sorted(set(foreign) - packed - {REDUCED})
    if foreign:
        raise ModelError(f"The draft in {folder} holds {foreign[0]} in a format MLX does not compute in: use bf16, fp16 or fp32.")
