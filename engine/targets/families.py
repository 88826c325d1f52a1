"""Which model families run with a draft, by name, so that lists of models can say it without MLX."""

from __future__ import annotations

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
