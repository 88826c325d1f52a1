"""Which adapter runs a loaded model, and the list of families that are known to work with a draft."""

from __future__ import annotations

from dataclasses import replace

import mlx.nn as nn

from engine.targets import families
from engine.targets.attention import AttentionTarget
from engine.targets.families import supported_families
from engine.targets.gated_delta import GatedDeltaTarget
from engine.targets.mamba2 import Mamba2Target
from engine.targets.protocol import TargetShape
from engine.targets.short_conv import ShortConvTarget
from engine.targets.sliding_window import SlidingWindowTarget

# Special families first; each has ``handles(model, family)``.
ADAPTERS: tuple[type[AttentionTarget], ...] = (SlidingWindowTarget, GatedDeltaTarget, ShortConvTarget, Mamba2Target)
FAMILIES: dict[type[AttentionTarget], tuple[str, ...]] = {
    AttentionTarget: families.ATTENTION,
    SlidingWindowTarget: families.SLIDING_WINDOW,
    GatedDeltaTarget: families.GATED_DELTA,
    ShortConvTarget: families.SHORT_CONV,
    Mamba2Target: families.MAMBA2,
}


def make_target(model: nn.Module, family: str, shape: TargetShape) -> AttentionTarget:
    """The adapter of ``model``. One that cannot take a draft still runs; its capabilities say why, and which families can."""
    chosen = next((adapter for adapter in ADAPTERS if adapter.handles(model, family)), AttentionTarget)
    target = chosen(model, family, shape)
    able = target.capabilities
    if able.reason is not None:
        others = "with lookup drafting" if able.rollback else "plainly"
        why = f"{family!r} models run {others} but not with a draft, because {able.reason}"
        target.capabilities = replace(able, reason=f"{why}. Families that do: {', '.join(supported_families())}")
    return target
