"""Loads a target: which family it is, its weights in the form this device runs best, and the object the loops use."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import load_model

from engine.errors import ModelError
from engine.kernels.expand import expand
from engine.models.checkpoint import Config, weight_files
from engine.targets.protocol import Target, TargetShape
from engine.targets.registry import make_target

TEXT = ("text_config",)
DEFAULT_CONTEXT = 4096  # for a config that names none


def load_target(folder: Path, dtype: mx.Dtype | None) -> Target:
    """The target in ``folder``. ``dtype`` expands and casts every weight; None runs them as stored. Raises ``ModelError``."""
    config = Config.read(folder)
    family = config.need("model_type", str)
    shape = TargetShape(
        hidden_size=config.need("hidden_size", int, TEXT),
        vocab_size=config.need("vocab_size", int, TEXT),
        num_layers=config.need("num_hidden_layers", int, TEXT),
        context_length=config.get("max_position_embeddings", int, DEFAULT_CONTEXT, TEXT),
    )
    weight_files(folder)
    model = _read_model(folder, family)
    if dtype is not None:
        model = expand(model, dtype)
    mx.eval(model.parameters())
    return make_target(model, family, shape)


def _read_model(folder: Path, family: str) -> nn.Module:
    try:
        model, _ = load_model(folder, lazy=True)
    except ValueError as error:
        if "not supported" in str(error):
            raise ModelError(
                f"The model family {family!r} in {folder} is not known to this version of mlx-lm: choose another model."
            ) from error
        raise ModelError(f"The model in {folder} cannot be loaded ({_first_line(error)}): download it again.") from error
    except (TypeError, KeyError, AttributeError, FileNotFoundError, RuntimeError) as error:
        raise ModelError(f"The model in {folder} cannot be loaded ({_first_line(error)}): download it again.") from error
    return model


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
