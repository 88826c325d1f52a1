"""Loads a target: which family it is, its weights in the form this device runs best, and the object the loops use."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model

from engine.errors import ModelError
from engine.kernels.expand import expand
from engine.models.checkpoint import Config, weight_files
from engine.targets.attention import find_body
from engine.targets.protocol import Target, TargetShape
from engine.targets.registry import make_target

TEXT = ("text_config",)
STEP_BYTES = 128 * 2**20  # read between two looks at whether loading was cancelled
DEFAULT_CONTEXT = 4096  # where neither the config nor the family names one


def load_target(
    folder: Path, dtype: mx.Dtype | None, kv_bits: int | None = None, step: Callable[[float], None] | None = None
) -> Target:
    """The target in ``folder``. Raises ``ModelError``.

    ``dtype`` expands and casts every weight; None runs them as stored. ``kv_bits`` quantises keys and values as they are kept.
    ``step`` is called with the fraction of the weights that is read, often enough to cancel by raising.
    """
    config = Config.read(folder)
    family = config.need("model_type", str)
    hidden_size = config.need("hidden_size", int, TEXT)
    num_layers = config.need("num_hidden_layers", int, TEXT)
    vocab_size = config.get("vocab_size", int, None, TEXT)
    context_length = config.get("max_position_embeddings", int, None, TEXT)
    weight_files(folder)
    model = _read_model(folder, family)
    if dtype is not None:
        model = expand(model, dtype, step)
    else:
        _read_weights(model, step or (lambda fraction: None))
    shape = TargetShape(
        hidden_size=hidden_size,
        vocab_size=vocab_size or _embedding_rows(model) or config.need("vocab_size", int, TEXT),
        num_layers=num_layers,
        context_length=context_length or _default_context(model),
    )
    target = make_target(model, family, shape)
    if kv_bits is not None:
        target.quantise_cache(kv_bits)
    return target


def _read_weights(model: nn.Module, step: Callable[[float], None]) -> None:
    """Brings the weights into memory piece by piece."""
    arrays = [array for _, array in tree_flatten(model.parameters())]
    total, named, read = sum(array.nbytes for array in arrays), 0, 0
    piece: list[mx.array] = []
    for array in arrays:
        piece.append(array)
        named += array.nbytes
        if named - read >= STEP_BYTES or named == total:
            mx.eval(piece)
            piece, read = [], named
            step(read / total)


def _embedding_rows(model: nn.Module) -> int | None:
    """The vocabulary of a model whose config leaves it to the family's default, as Gemma 3's does."""
    embedding = find_body(model).get("embed_tokens")
    return None if embedding is None else embedding.weight.shape[0]


def _default_context(model: nn.Module) -> int:
    arguments = getattr(model.get("language_model") or model, "args", None)
    return getattr(arguments, "max_position_embeddings", None) or DEFAULT_CONTEXT


def _read_model(folder: Path, family: str) -> nn.Module:
    try:
        model, _ = load_model(folder, lazy=True)
    except ValueError as error:
        if "not supported" in str(error):
            raise ModelError(
                f"The model family {family!r} in {folder} is not known to mlx-lm {version('mlx-lm')}: choose a model of another "
                "family, such as llama, qwen3 or gemma3."
            ) from error
        raise ModelError(f"The model in {folder} cannot be loaded ({_first_line(error)}): download it again.") from error
    except (TypeError, KeyError, AttributeError, FileNotFoundError, RuntimeError) as error:
        raise ModelError(f"The model in {folder} cannot be loaded ({_first_line(error)}): download it again.") from error
    return model


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(": ")[:200] if str(error).strip() else type(error).__name__
