"""Weights in the form the CPU is fast at: dequantised and in one floating-point type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import dequantize_model

Model = TypeVar("Model", bound=nn.Module)


def expand(model: Model, dtype: mx.Dtype, step: Callable[[float], None] | None = None) -> Model:
    """Dequantises and casts one tensor after the other, the largest first while nothing else is there.

    Dequantising takes several times a tensor's size for a moment; in this order that never tops the finished model.
    Integer parameters keep their type. ``step`` is called with the fraction that is done.
    """
    model = dequantize_model(model)
    model.set_dtype(dtype)
    weights = [weight for _, weight in tree_flatten(model.parameters())]
    total, done = sum(weight.nbytes for weight in weights), 0
    for weight in sorted(weights, key=lambda weight: weight.nbytes, reverse=True):
        mx.eval(weight)
        done += weight.nbytes
        if step is not None:
            step(done / total)
    return model
