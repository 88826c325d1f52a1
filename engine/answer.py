"""One answer as it grows: text, events and the statistics of its steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from engine.decoding.costs import CostCurve, PassCosts
from engine.decoding.steps import Step
from engine.events import (
    Approximate,
    ContextFull,
    Cycle,
    Event,
    Fallback,
    Finished,
    FinishReason,
    Mode,
    Statistics,
    TextDelta,
    TokenLogprob,
    Trimmed,
)
from engine.prefill.context import Fitted
from engine.text.detokenize import make_detokenizer
from engine.text.stop import StopStrings
from engine.text.thinking import ThinkingSplitter


class Answer:
    """Turns steps into events. ``start`` is a ``time.perf_counter`` reading; ``costs`` is this machine's curve, where known."""

    def __init__(
        self,
        tokenizer: Any,
        stop_ids: frozenset[int],
        stops: tuple[str, ...],
        prompt_tokens: int,
        start: float,
        fallback: str | None,
        costs: CostCurve | None = None,
        open_tag: str = "",
    ):
        self._stop_ids, self._prompt_tokens, self._start, self._fallback = stop_ids, prompt_tokens, start, fallback
        self._detokenizer, self._stops = make_detokenizer(tokenizer, stop_ids), StopStrings(stops)
        self._thoughts, self._thinking_tokens, self._thinking_s = ThinkingSplitter(open_tag), 0, 0.0
        self._text: list[str] = []
        self._tokens: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._first_at = self._last_at = 0.0
        self._cycles = self._proposed = self._accepted = self._parked = 0
        self._lookup_proposed = self._lookup_accepted = 0
        self._plain_s = 0.0
        self.cached_tokens, self.cache = 0, ""  # what the prefix cache gave, and in words
        self._costs = PassCosts(costs)
        self._trimmed: Trimmed | None = None
        self._kept_tokens: int | None = None
        self._context_full = False

    def now(self) -> float:
        """Seconds since the request was taken."""
        return time.perf_counter() - self._start

    def begin_decoding(self) -> None:
        """Marks the arrival of the first token."""
        self._first_at = self._last_at = self.now()

    def notices(self, fitted: Fitted) -> Iterator[Event]:
        """What is known before the prompt is read: a fallback, turns left out, a prompt read in part."""
        if self._fallback is not None:
            yield Fallback(self._fallback)
        if fitted.dropped:
            self._trimmed = Trimmed(fitted.dropped, fitted.dropped_tokens, self.now())
            yield self._trimmed
        if fitted.runs is not None:
            self._kept_tokens = sum(stop - start for start, stop in fitted.runs)
            yield Approximate(self._kept_tokens, self._prompt_tokens, self.now())

    def context_full(self, context_length: int) -> ContextFull:
        """Notes that the context ended before the token limit did."""
        self._context_full = True
        return ContextFull(context_length, self.now())

    @property
    def ended_by_string(self) -> bool:
        """A stop string was found."""
        return self._stops.matched is not None

    def take(self, step: Step, first: bool) -> Iterator[Event]:
        """Adds one step's tokens; ``first`` is the token that prefill produced, which is no cycle."""
        self._last_at = self.now()
        kept, text = self._add(step.tokens)
        if not first:
            accepted = min(step.accepted, len(kept))
            self._cycles += 1
            self._proposed += step.proposed
            self._accepted += accepted
            self._parked += step.parked
            if step.source == "lookup":
                self._lookup_proposed += step.proposed
                self._lookup_accepted += accepted
            if step.plain:
                self._plain_s += step.verify_s or 0.0
            else:
                self._costs.add(step.proposed + 1, step.draft_s, step.verify_s, drafted=step.source == "draft")
            yield Cycle(self._cycles - 1, step.proposed, accepted, len(kept), self._last_at, step.source)
        if kept:
            self._follow_thoughts(text, len(kept))
            logprobs = step.logprobs[: len(kept)]
            self._logprobs += logprobs
            yield TextDelta(text, kept, self._last_at, logprobs)

    def reason(self, cancelled: bool, max_tokens: int) -> FinishReason:
        """Why the answer is over."""
        if self.ended_by_string or (self._tokens and self._tokens[-1] in self._stop_ids):
            return "stop"
        return "length" if len(self._tokens) >= max_tokens or not cancelled else "cancelled"

    def flush(self, cut: bool) -> Iterator[Event]:
        """The text still held back for an incomplete character or a stop string that never came. ``cut``: it could go on."""
        if not self.ended_by_string:
            text = self._stops.push(self._detokenizer.flush(cut)) + self._stops.flush()
            if text:
                self._text.append(text)
                yield TextDelta(text, (), self._last_at)

    def finish(self, reason: FinishReason, mode: Mode) -> Finished:
        """The last event; call after ``flush``."""
        decode_s = self._last_at - self._first_at
        statistics = self._statistics(mode, decode_s)
        return Finished(reason, "".join(self._text), tuple(self._tokens), statistics, tuple(self._logprobs))

    def _add(self, tokens: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
        kept, parts = [], []
        for token in tokens:
            kept.append(token)
            parts.append(self._stops.push(self._detokenizer.push(token)))
            if self.ended_by_string:
                break
        self._tokens += kept
        self._text += parts
        return tuple(kept), "".join(parts)

    def _follow_thoughts(self, text: str, tokens: int) -> None:
        inside = self._thoughts.thinking
        part = self._thoughts.feed(text)
        if inside or self._thoughts.thinking or part.thinking:  # a long block may hold all of the thoughts
            self._thinking_tokens += tokens
            self._thinking_s = self._last_at - self._first_at

    def _statistics(self, mode: Mode, decode_s: float) -> Statistics:
        plain = mode == "baseline"
        draft_s, verify_s = self._costs.totals()
        return Statistics(
            mode=mode,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=len(self._tokens),
            ttft_s=self._first_at,
            decode_s=decode_s,
            cycles=self._cycles,
            proposed=self._proposed,
            accepted=self._accepted,
            draft_s=0.0 if plain else draft_s,
            verify_s=decode_s if plain else verify_s + self._plain_s,
            parked_cycles=self._parked,
            fallback=self._fallback,
            cache=self.cache,
            kept_tokens=self._kept_tokens,
            dropped_messages=self._trimmed.messages if self._trimmed else 0,
            dropped_tokens=self._trimmed.tokens if self._trimmed else 0,
            context_full=self._context_full,
            lookup_proposed=self._lookup_proposed,
            lookup_accepted=self._lookup_accepted,
            thinking_tokens=self._thinking_tokens if self._thoughts.thought else 0,
            thinking_s=self._thinking_s if self._thoughts.thought else 0.0,
        )
