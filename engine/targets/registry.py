"""Which adapter runs a loaded model, and the list of families that are known to work with a draft."""

from __future__ import annotations

from dataclasses import replace

import mlx.nn as nn

from engine.targets.attention import AttentionTarget
from engine.targets.gated_delta import GatedDeltaTarget
from engine.targets.mamba2 import Mamba2Target
from engine.targets.protocol import TargetShape
from engine.targets.short_conv import ShortConvTarget
from engine.targets.sliding_window import SlidingWindowTarget

# Special families first; each has ``handles(model, family)``.
ADAPTERS: tuple[type[AttentionTarget], ...] = (SlidingWindowTarget, GatedDeltaTarget, ShortConvTarget, Mamba2Target)
# model_type as config.json gives it; every one is run by the tests, and others that look alike may work too.
FAMILIES: dict[type[AttentionTarget], tuple[str, ...]] = {
    AttentionTarget: ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "granite", "helium", "mimo", "olmo2", "seed_oss",
                      "smollm3", "stablelm", "starcoder2"),
    SlidingWindowTarget: ("gemma3", "gemma3_text", "gemma4", "gemma4_text", "gpt_oss", "afmoe", "cohere2", "exaone4",
                          "exaone_moe", "laguna", "mellum", "mimo_v2_flash", "ministral3", "muse_glimmer", "olmo3", "step3p5"),
    GatedDeltaTarget: ("qwen3_5", "qwen3_5_moe", "qwen3_next"),
    ShortConvTarget: ("lfm2", "lfm2_moe"),
    Mamba2Target: ("falcon_h1", "granitemoehybrid", "nemotron_h"),
}  # fmt: skip


def supported_families() -> tuple[str, ...]:
    """The families that run with a draft, in alphabetical order."""
    return tuple(sorted(family for families in FAMILIES.values() for family in families))


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
