"""All figures of one answer by name, for the window that opens beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.core.figures import MODE_NAMES, percent, rate, seconds
from app.core.words import mark, number, tr

ENDS = {
    "stop": mark("The model ended it"),
    "length": mark("Cut at the token limit"),
    "cancelled": mark("Stopped"),
}


def answer_details(statistics: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """(name, figure) of everything known of an answer, from what ``figures.answer_statistics`` made, also in an older version."""
    known = statistics or {}
    rows: list[tuple[str, str]] = []

    def row(name: str, key: str, words: Callable[[Any], str] = number, zero: bool = True) -> None:
        value = known.get(key)
        if value is not None and value != "" and (zero or value):
            rows.append((name, words(value)))

    row(tr("Mode"), "mode", lambda mode: tr(MODE_NAMES.get(mode, str(mode))))
    row(tr("Speed"), "decode_tok_s", rate, zero=False)
    row(tr("First token after"), "ttft_s", seconds)
    row(tr("Tokens of the answer"), "completion_tokens")
    row(tr("Thought of these"), "thinking_tokens", zero=False)
    row(tr("Tokens of the prompt"), "prompt_tokens")
    row(tr("Read of these: approximate"), "kept_tokens")
    row(tr("Read from the cache"), "cached_tokens")
    row(tr("Cycles"), "cycles", zero=False)
    row(tr("Tokens per cycle"), "tokens_per_cycle", lambda count: number(count, ".2f"), zero=False)
    row(tr("Accepted"), "acceptance_rate", lambda share: _accepted(share, known))
    row(tr("Looked up of these"), "lookup_accepted", zero=False)
    row(tr("Drafting"), "draft_s", seconds, zero=False)
    row(tr("Checking"), "verify_s", seconds, zero=False)
    row(tr("Plain steps while speculation was parked"), "parked_cycles", zero=False)
    row(tr("Turns left out"), "dropped_messages", zero=False)
    row(tr("Exact block lengths only"), "exact", lambda _exact: tr("yes"), zero=False)
    row(tr("Temperature"), "temperature", lambda value: number(value, ".2f"))
    row(tr("Seed"), "seed", str)
    row(tr("End"), "finish_reason", lambda reason: _end(reason, known))
    return rows


def note(statistics: Mapping[str, Any] | None) -> str:
    """Why the answer was made in another way than asked for; "" where it was not."""
    return str((statistics or {}).get("fallback") or "")


def _accepted(share: float, known: Mapping[str, Any]) -> str:
    accepted, proposed = known.get("accepted"), known.get("proposed")
    if accepted is None or proposed is None:
        return percent(share)
    return tr("{share}: {accepted} of {proposed}", share=percent(share), accepted=accepted, proposed=proposed)


def _end(reason: str, known: Mapping[str, Any]) -> str:
    return tr("Cut where the context ends") if known.get("context_full") else tr(ENDS.get(reason, str(reason)))
