"""Loads a target: which family it is, its weights in the form this device runs best, and the object the loops use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model

from engine.errors import ModelError
from engine.kernels.expand import expand
from engine.models.checkpoint import Config, tensor_items, weight_files
from engine.models.runnable import encoded_refusal, refusal
from engine.targets.attention import AttentionTarget, find_body
from engine.targets.protocol import Target, TargetShape
from engine.targets.registry import make_target

TEXT = ("text_config",)
STEP_BYTES = 128 * 2**20  # read between two looks at whether loading was cancelled
FP8 = "8-bit floats (fp8)"
DEFAULT_CONTEXT = 4096  # where neither the config nor the family names one


class Unread(NamedTuple):
    """A target whose weights are checked by name, number and shape, and not read yet."""

    folder: Path
    model: nn.Module
    family: str
    shape: TargetShape

    def adapted(self) -> AttentionTarget:
        """The object the loops use. Raises ``ModelError`` where not even one token could be run through it."""
        try:
            target = make_target(self.model, self.family, self.shape)
            target.forward(mx.zeros((1,), dtype=mx.int32), target.make_cache())  # a graph of it, which is never computed
        except Exception as error:  # mlx-lm's own code, with whatever numbers the config holds
            raise ModelError(_unusable(self.folder, error)) from error
        return target


def open_target(folder: Path) -> Unread:
    """The target in ``folder`` by its config and the headers of its weights; quick, and it takes no memory to speak of.

    Raises ``ModelError`` for whatever of it cannot run here.
    """
    config = Config.read(folder)
    family = config.need("model_type", str)
    hidden_size = config.need("hidden_size", int, TEXT)
    num_layers = config.need("num_hidden_layers", int, TEXT)
    vocab_size = config.get("vocab_size", int, None, TEXT)
    context_length = config.get("max_position_embeddings", int, None, TEXT)
    weight_files(folder)
    refused = refusal(config.values, str(folder))
    if refused is not None:
        raise ModelError(str(refused))
    model = _read_model(folder, family)
    shape = TargetShape(
        hidden_size=hidden_size,
        vocab_size=vocab_size or _embedding_rows(model) or config.need("vocab_size", int, TEXT),
        num_layers=num_layers,
        context_length=context_length or _default_context(model),
    )
    return Unread(folder, model, family, shape)


def load_target(
    folder: Path, dtype: mx.Dtype | None, kv_bits: int | None = None, step: Callable[[float], None] | None = None
) -> Target:
    """The target in ``folder``. Raises ``ModelError``.

    ``dtype`` expands and casts every weight; None runs them as stored. ``kv_bits`` quantises keys and values as they are kept.
    ``step`` is called with the fraction of the weights that is read, often enough to cancel by raising.
    """
    unread = open_target(folder)
    if dtype is not None:
        unread = unread._replace(model=expand(unread.model, dtype, step))
    else:
        _read_weights(unread.model, step or (lambda fraction: None))
    target = unread.adapted()
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
        if _holds_fp8(folder):
            raise ModelError(str(encoded_refusal(str(folder), family, FP8))) from error
        raise ModelError(
            f"The weights in {folder} do not belong to its config.json ({_first_line(error)}): download the model again, or choose "
            "another conversion."
        ) from error
    except Exception as error:  # mlx-lm builds whatever the config describes
        raise ModelError(_unusable(folder, error)) from error
    if _holds_fp8(folder) and _takes_bytes_for_numbers(model):
        raise ModelError(str(encoded_refusal(str(folder), family, FP8)))
    return model


def _unusable(folder: Path, error: Exception) -> str:
    what = f"The model in {folder} cannot be loaded as its config.json describes it ({_first_line(error)})"
    return f"{what}: download it again, or choose another conversion."


def _holds_fp8(folder: Path) -> bool:
    return any(kind.startswith("F8_E") for file in weight_files(folder) for kind, _ in tensor_items(file).values())


def _takes_bytes_for_numbers(model: nn.Module) -> bool:
    """MLX reads 8-bit floats as bytes; those that belong to no scales would be multiplied by as if they were numbers."""
    parameters = dict(tree_flatten(model.parameters()))
    bytewise = {name.rpartition(".")[0] for name, array in parameters.items() if array.dtype == mx.uint8}
    return any(f"{module}.scales" not in parameters for module in bytewise)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(": ")[:200] if str(error).strip() else type(error).__name__
