"""Which adapter runs a loaded model: the first that handles it, the plain attention adapter otherwise."""

from __future__ import annotations

import mlx.nn as nn

from engine.targets.attention import AttentionTarget
from engine.targets.gated_delta import GatedDeltaTarget
from engine.targets.mamba2 import Mamba2Target
from engine.targets.protocol import TargetShape
from engine.targets.short_conv import ShortConvTarget
from engine.targets.sliding_window import SlidingWindowTarget

# Special families first; each has ``handles(model, family)``.
ADAPTERS: tuple[type[AttentionTarget], ...] = (SlidingWindowTarget, GatedDeltaTarget, ShortConvTarget, Mamba2Target)


def make_target(model: nn.Module, family: str, shape: TargetShape) -> AttentionTarget:
    """The adapter of ``model``. One that cannot be rolled back still runs; its capabilities say why it cannot speculate."""
    chosen = next((adapter for adapter in ADAPTERS if adapter.handles(model, family)), AttentionTarget)
    return chosen(model, family, shape)
