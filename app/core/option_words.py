"""The options in force in words: what an answer is asked with beside the chat, and how its pair was loaded."""

from __future__ import annotations

from app.core.figures import percent
from app.core.words import mark, number, tr
from engine import GenerationRequest, PairInfo

# Further choices of how tokens are drawn: name, and the value that is none.
SAMPLING: dict[str, tuple[str, float]] = {
    "top_p": (mark("Top-p"), 1.0),
    "top_k": (mark("Top-k"), 0),
    "min_p": (mark("Min-p"), 0.0),
    "repetition_penalty": (mark("Repetition penalty"), 1.0),
    "presence_penalty": (mark("Presence penalty"), 0.0),
    "frequency_penalty": (mark("Frequency penalty"), 0.0),
}


def pair_words(kv_bits: int | None, draft_bits: int | None) -> list[str]:
    """How a pair is kept in memory, where that is not the default."""
    words = [tr("keys and values {bits} bit", bits=kv_bits)] if kv_bits is not None else []
    return words + ([tr("draft {bits} bit", bits=draft_bits)] if draft_bits is not None else [])


def pair_tag(kv_bits: int | None, draft_bits: int | None) -> str:
    """The same where there is no room for more than the bits, each once: a tool tip has the words."""
    bits = dict.fromkeys(each for each in (kv_bits, draft_bits) if each is not None)
    return tr("{bits} bit", bits="/".join(map(str, bits))) if bits else ""


def request_words(request: GenerationRequest) -> list[str]:
    """What a request asks of the engine, where that is not the default."""
    words = [tr("exact")] if request.exact else []
    if request.sparse is not None:
        words.append(tr("approximate: about {share} of a long prompt read", share=percent(request.sparse.keep)))
    return words + ([] if request.use_cache else [tr("nothing from the cache")])


def in_force(request: GenerationRequest | None, pair: PairInfo | None) -> str:
    """Both in one line; "" where all are the defaults."""
    words = request_words(request) if request is not None else []
    return " · ".join(words + (pair_words(pair.kv_bits, pair.draft_bits) if pair is not None else []))


def options_report(request: GenerationRequest, pair: PairInfo | None) -> dict[str, str]:
    """By name, all that one needs beside prompt and model to run ``request`` again."""
    sampling = [tr("temperature {value}", value=number(request.temperature, ".2f")), tr("seed {value}", value=str(request.seed))]
    sampling.append(tr("at most {count} tokens", count=request.max_tokens))
    for name, (title, off) in SAMPLING.items():
        if getattr(request, name) != off:
            sampling.append(f"{tr(title)} {number(getattr(request, name), 'g')}")
    if request.thinking is not None:
        sampling.append(tr("thinking on") if request.thinking else tr("thinking off"))
    return {tr("Sampling"): ", ".join(sampling), tr("Options"): in_force(request, pair) or tr("the defaults")}


def whole_only(pair: PairInfo | None) -> str:
    """Why the pair cannot read a prompt in part, and what to do about it; "" where it can."""
    if pair is None or pair.reads_in_part:
        return ""
    if pair.kv_bits is not None:
        return tr("Not with quantised keys and values: choose full ones in the options of this model.")
    return tr("This model cannot read a prompt in part.")
