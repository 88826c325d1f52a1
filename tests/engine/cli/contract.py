"""What scripts know of the command line; one written for one version must run with the next."""

from __future__ import annotations

ANSWER_FIELDS = [
    "token_ids", "mode", "finish_reason", "prompt_tokens", "cached_tokens", "cache", "completion_tokens", "ttft_s",
    "decode_tok_s", "cycles", "proposed", "accepted", "tokens_per_cycle", "acceptance_rate", "draft_s", "verify_s",
    "parked_cycles", "fallback", "approximate", "kept_tokens", "dropped_messages", "dropped_tokens", "context_full",
    "lookup_proposed", "lookup_accepted",
]  # fmt: skip
RUN_FIELDS = [
    "id", "mode", "completion_tokens", "baseline", "dflash", "speedup", "identical", "identity_reason", "first_divergence",
    "limit_tok_s",
    "efficiency",
]  # fmt: skip


def generate(pair: str, *more: str) -> tuple[str, ...]:
    return ("generate", "--model", pair, "--prompt", "Hello 虹", "--max-tokens", "12", *more)
