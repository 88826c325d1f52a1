"""Which model families run with a draft, by name, so that lists of models can say it without MLX."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib.util import find_spec

# model_type as config.json gives it; every one is run by the tests, and others that look alike may work too.
ATTENTION = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "granite", "helium", "mimo", "olmo2", "seed_oss", "smollm3",
             "stablelm", "starcoder2")  # fmt: skip
SLIDING_WINDOW = ("gemma3", "gemma3_text", "gemma4", "gemma4_text", "gpt_oss", "afmoe", "cohere2", "exaone4", "exaone_moe",
                  "laguna", "mellum", "mimo_v2_flash", "ministral3", "muse_glimmer", "olmo3", "step3p5")  # fmt: skip
GATED_DELTA = ("qwen3_5", "qwen3_5_moe", "qwen3_next")
SHORT_CONV = ("lfm2", "lfm2_moe")
MAMBA2 = ("falcon_h1", "granitemoehybrid", "nemotron_h")


def supported_families() -> tuple[str, ...]:
    """The families that run with a draft, in alphabetical order."""
    return tuple(sorted(ATTENTION + SLIDING_WINDOW + GATED_DELTA + SHORT_CONV + MAMBA2))


# What mlx-lm runs under the name of another family.
RENAMED = ("falcon_mamba", "gemma4_unified", "iquestcoder", "joyai_llm_flash", "kimi_k2", "llava", "minimax_m2", "mistral",
           "phi-msft", "qwen2_5_vl", "xverse", "deepseek_v41_text")  # fmt: skip


@cache
def known_families() -> frozenset[str]:
    """Every family that runs here, most of them without a draft: by the files of mlx-lm, which is not imported."""
    spec = find_spec("mlx_lm")
    folders = [f"{folder}/models" for folder in (spec.submodule_search_locations or ())] if spec is not None else []
    return frozenset({*supported_families(), *RENAMED, *(module.name for module in pkgutil.iter_modules(folders))})
