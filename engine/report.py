"""Statistics as the JSON objects that ``generate`` and ``bench`` print; the field names are relied on by scripts."""

from __future__ import annotations

from typing import Any

from engine.events import Finished, TokenLogprob


def answer_record(finished: Finished, with_text: bool = True) -> dict[str, Any]:
    """One answer. Times in seconds, rates in tokens per second; rates that never came to be are None.

    ``logprobs`` is there only where the request asked for them.
    """
    numbers = finished.statistics
    record: dict[str, Any] = {
        "token_ids": list(finished.token_ids),
        "mode": numbers.mode,
        "finish_reason": finished.reason,
        "prompt_tokens": numbers.prompt_tokens,
        "cached_tokens": numbers.cached_tokens,
        "cache": numbers.cache,
        "completion_tokens": numbers.completion_tokens,
        "ttft_s": numbers.ttft_s,
        "decode_tok_s": numbers.decode_tok_s,
        "cycles": numbers.cycles,
        "proposed": numbers.proposed,
        "accepted": numbers.accepted,
        "tokens_per_cycle": numbers.tokens_per_cycle,
        "acceptance_rate": numbers.acceptance_rate,
        "draft_s": numbers.draft_s,
        "verify_s": numbers.verify_s,
        "parked_cycles": numbers.parked_cycles,
        "fallback": numbers.fallback,
        "approximate": numbers.kept_tokens is not None,
        "kept_tokens": numbers.prompt_tokens if numbers.kept_tokens is None else numbers.kept_tokens,
        "dropped_messages": numbers.dropped_messages,
        "dropped_tokens": numbers.dropped_tokens,
        "context_full": numbers.context_full,
        "lookup_proposed": numbers.lookup_proposed,
        "lookup_accepted": numbers.lookup_accepted,
    }
    if finished.logprobs:
        record["logprobs"] = [_logprob_record(entry) for entry in finished.logprobs]
    return {"text": finished.text, **record} if with_text else record


def _logprob_record(entry: TokenLogprob) -> dict[str, Any]:
    top = [{"token_id": token, "logprob": value} for token, value in entry.top]
    return {"token_id": entry.token_id, "logprob": entry.logprob, "top": top}
