"""How figures are kept and worded, the same in the meter, under an answer, side by side and in exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.core.words import mark, number, tr, trn
from engine import Finished, GenerationRequest

TEXTS = ("mode", "finish_reason", "fallback", "cache")  # of an answer's statistics; all others are numbers
LARGEST_FIGURE = 1e12
MODE_NAMES = {"auto": mark("Auto"), "dflash": "DFlash", "baseline": mark("Plain"), "lookup": mark("Lookup")}


def rate(tok_s: float) -> str:
    """Tokens per second in words: one decimal below ten, where it still says something."""
    return tr("{rate} tok/s", rate=number(tok_s, ",.1f" if tok_s < 9.95 else ",.0f"))


def percent(share: float) -> str:
    """A share of 0..1 in words."""
    return f"{100 * share:.0f}\u00a0%"


def seconds(duration_s: float) -> str:
    """A duration in words: a decimal below a minute, minutes from there."""
    if duration_s < 59.95:
        return f"{number(duration_s, '.1f')}\u00a0s"
    minutes, rest = divmod(round(duration_s), 60)
    return tr("{minutes} min {seconds} s", minutes=minutes, seconds=rest)


SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Bytes in words, by thousands as the system's own file manager counts: "85 kB", "93.2 MB", "9.1 GB"."""
    power = _size_power(count)
    return f"{_in_power(count, power)}\u00a0{SIZE_UNITS[power]}"


def size_of(done: int, total: int) -> str:
    """How much of ``total`` bytes is there, both in the unit of ``total``: "3.1 of 9.1 GB"."""
    power = _size_power(total)
    places = ",.0f" if power < 2 else ",.1f"  # the same number of places all the time: figures that grow must not jitter
    scale = 1000**power
    whole = f"{number(total / scale, places)}\u00a0{SIZE_UNITS[power]}"
    return tr("{done} of {total}", done=number(done / scale, places), total=whole)


def _size_power(count: int) -> int:
    return next((power for power in range(len(SIZE_UNITS) - 1) if count < 999.5 * 1000**power), len(SIZE_UNITS) - 1)


def _in_power(count: int, power: int) -> str:
    value = count / 1000**power
    return number(value, ",.0f" if power < 2 or value >= 99.95 else ",.1f")


def cache_words(cached_tokens: int, prompt_tokens: int, source: str) -> str:
    """What the prefix cache gave, or why nothing; "" where that is not known."""
    if cached_tokens:
        return tr("{cached} of {total} prompt tokens from {source}", cached=cached_tokens, total=prompt_tokens, source=source)
    return tr("no prompt tokens from the cache: {reason}", reason=source) if source else ""


def answer_statistics(finished: Finished, request: GenerationRequest | None = None) -> dict[str, Any]:
    """The plain dict kept with an answer: every field and rate of ``Finished.statistics``, ``finish_reason``, and of ``request``
    what one needs to ask for the same answer again: ``temperature``, ``seed``, and ``exact`` where it was."""
    asked = {"temperature": request.temperature, "seed": request.seed} if request is not None else {}
    if request is not None and request.exact:
        asked["exact"] = True
    statistics = finished.statistics
    return {
        **asdict(statistics),
        "decode_tok_s": statistics.decode_tok_s,
        "tokens_per_cycle": statistics.tokens_per_cycle,
        "acceptance_rate": statistics.acceptance_rate,
        "finish_reason": finished.reason,
        **asked,
    }


def known_figures(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """What of ``statistics`` that came in a file can be shown: names that are text and figures that are numbers."""
    return {name: value for name, value in statistics.items() if value is None or _fits(name, value)}


def _fits(name: str, value: Any) -> bool:
    if name in TEXTS:
        return isinstance(value, str)
    return isinstance(value, int | float) and abs(value) < LARGEST_FIGURE  # not for NaN either


def statistics_line(statistics: Mapping[str, Any] | None) -> str:
    """The line under an answer, like "41 tok/s · 3.2 tokens/cycle · 71 % accepted · first 0.3 s"; "" for None.

    Takes what ``answer_statistics`` made, also in an older version: a figure that is missing is left out.
    """
    if not statistics or not statistics.get("completion_tokens"):
        return ""
    parts = []
    if statistics.get("kept_tokens") is not None:
        kept, prompt = statistics["kept_tokens"], statistics.get("prompt_tokens", 0)
        parts.append(tr("approximate: {kept} of {total} prompt tokens read", kept=kept, total=prompt))
    if statistics.get("dropped_messages"):
        count = statistics["dropped_messages"]
        parts.append(trn("without the oldest message", "without the oldest {count} messages", count))
    if statistics.get("decode_tok_s"):
        parts.append(rate(statistics["decode_tok_s"]))
    if statistics.get("acceptance_rate") is not None:
        parts.append(tr("{count} tokens/cycle", count=number(statistics.get("tokens_per_cycle", 0.0), ".1f")))
        parts.append(tr("{share} accepted", share=percent(statistics["acceptance_rate"])))
    elif statistics.get("mode") == "baseline":
        parts.append(tr("plain decoding"))
    if statistics.get("ttft_s") is not None:
        parts.append(tr("first {time}", time=seconds(statistics["ttft_s"])))
    if statistics.get("cached_tokens"):
        source = statistics.get("cache", tr("cache"))
        parts.append(cache_words(statistics["cached_tokens"], statistics.get("prompt_tokens", 0), source))
    if statistics.get("finish_reason") == "length":
        parts.append(tr("cut where the context ends") if statistics.get("context_full") else tr("cut at the token limit"))
    return " · ".join(parts)
