"""What the engine tells its callers while it works: frozen records, in the order they happen.

A request yields ``PrefillProgress`` (one a chunk), ``Started``, then ``Cycle`` and ``TextDelta`` records until ``Finished``.
The first exact request of a pair on a machine begins with ``ExactnessProgress``, which no figure of the answer counts.
``Trimmed`` and ``Approximate`` come before the first ``PrefillProgress``, ``ContextFull`` right before ``Finished``;
``Fallback`` may come at any point before it. Nothing here imports MLX, so the window can use it cheaply.
Every ``at_s`` is in seconds since the engine took the request, or since it had measured for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["auto", "dflash", "baseline", "lookup"]
FinishReason = Literal["stop", "length", "cancelled"]
Source = Literal["draft", "lookup"]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """One step of setting up or loading a pair. ``fraction`` is in 0..1, or None while it is unknown."""

    stage: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class ExactnessProgress:
    """Which block lengths are exact here is being measured, once for a pair on a machine; ``fraction`` in 0..1 is done."""

    fraction: float


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """``done`` of ``total`` prompt tokens are in the caches."""

    done: int
    total: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Started:
    """The first token is known; decoding begins. ``block_length`` is 0 where nothing is proposed; ``mode`` is never auto.

    ``cached_tokens`` of the prompt came out of the prefix cache; ``cache`` says from where, or why none did, in a few words.
    ``open_tag`` is the tag by which the prompt left the model's thinking open: the text begins inside it. "": it does not.
    """

    mode: Mode
    prompt_tokens: int
    cached_tokens: int
    block_length: int
    at_s: float
    cache: str = ""
    open_tag: str = ""


@dataclass(frozen=True, slots=True)
class BlockLength:
    """The block length changed, and why, in words. 0: speculation is parked because plain decoding is measured to be faster.

    Beside a draft, passages that occurred before are looked up whatever this length is; ``Cycle.source`` tells them apart.
    """

    length: int
    reason: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Cycle:
    """One verify pass over what ``source`` proposed; plain decoding reports each step as a cycle that proposed nothing.

    ``committed`` counts the tokens that entered the answer: accepted + 1, less what a stop or the token limit cut off.
    ``source`` is "draft" after a draft pass, "lookup" for what followed the same tokens earlier, None where nothing was proposed.
    """

    index: int
    proposed: int
    accepted: int
    committed: int
    at_s: float
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural log probability of an emitted token, and ``top``: (token id, log probability) of the most likely tokens there.

    Both by the target's own distribution, before bias, penalties and temperature. The emitted token is in ``top`` only if it is
    among the most likely.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text to append. ``token_ids`` are the tokens committed since the last delta; either may be empty, never both.

    ``logprobs`` has one record a token where the request asked for them, and is empty where it did not.
    """

    text: str
    token_ids: tuple[int, ...]
    at_s: float
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallback:
    """The engine does something else than was asked, and why, in words for the user."""

    reason: str


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The chat did not fit the context: its oldest ``messages``, ``tokens`` of the prompt, were left out."""

    messages: int
    tokens: int
    at_s: float

    @property
    def reason(self) -> str:
        """In words for the user."""
        return f"The chat does not fit the context: its oldest {self.messages:,} messages ({self.tokens:,} tokens) are left out."


@dataclass(frozen=True, slots=True)
class Approximate:
    """Only ``kept_tokens`` of ``prompt_tokens`` are read, so the answer may differ from that to the whole prompt."""

    kept_tokens: int
    prompt_tokens: int
    at_s: float

    @property
    def reason(self) -> str:
        """In words for the user."""
        return f"Approximate: {self.kept_tokens:,} of the prompt's {self.prompt_tokens:,} tokens are read."


@dataclass(frozen=True, slots=True)
class ContextFull:
    """The answer was cut where the context of ``context_length`` tokens ends, before the token limit that was asked for."""

    context_length: int
    at_s: float

    @property
    def reason(self) -> str:
        """In words for the user."""
        return f"The context of {self.context_length:,} tokens is full: start a new chat or shorten this one."


@dataclass(frozen=True, slots=True)
class Statistics:
    """What one answer cost. Times in seconds; rates in tokens per second.

    ``decode_tok_s`` counts the tokens after the first over the time after the first. ``acceptance_rate`` is accepted over
    proposed, None where nothing was proposed. ``draft_s`` and ``verify_s`` are totals estimated from the cycles that were
    timed part by part (one in ``TIMED_EVERY``, see ``engine.decoding.speculative``); plain steps count as verify time.
    ``cached_tokens`` and ``cache`` are those of ``Started``.
    ``kept_tokens`` of the prompt were read, None: all of them; otherwise the answer is approximate. ``dropped_messages`` and
    ``dropped_tokens`` were left out of the prompt, ``context_full``: the answer ended where the context does.
    ``lookup_proposed`` and ``lookup_accepted`` are the parts of ``proposed`` and ``accepted`` that were looked up, not drafted.
    ``thinking_tokens`` of the answer were thought and not said, for ``thinking_s`` seconds from the first token.
    """

    mode: Mode
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    ttft_s: float
    decode_s: float
    cycles: int
    proposed: int
    accepted: int
    draft_s: float
    verify_s: float
    parked_cycles: int
    fallback: str | None
    cache: str = ""
    kept_tokens: int | None = None
    dropped_messages: int = 0
    dropped_tokens: int = 0
    context_full: bool = False
    lookup_proposed: int = 0
    lookup_accepted: int = 0
    thinking_tokens: int = 0
    thinking_s: float = 0.0

    @property
    def decode_tok_s(self) -> float:
        return (self.completion_tokens - 1) / self.decode_s if self.decode_s > 0 and self.completion_tokens > 1 else 0.0

    @property
    def tokens_per_cycle(self) -> float:
        return (self.completion_tokens - 1) / self.cycles if self.cycles else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.proposed if self.proposed else None


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a request. ``token_ids`` includes the stop token if the answer ended on one; ``text`` never does.

    ``logprobs`` has one record a token where the request asked for them, and is empty where it did not.
    """

    reason: FinishReason
    text: str
    token_ids: tuple[int, ...]
    statistics: Statistics
    logprobs: tuple[TokenLogprob, ...] = ()


Notice = Fallback | Trimmed | Approximate | ContextFull  # each has a ``reason`` in words for the user
Event = ExactnessProgress | PrefillProgress | Started | BlockLength | Cycle | TextDelta | Notice | Finished
