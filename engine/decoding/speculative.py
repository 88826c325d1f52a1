"""The one speculative loop, for every source of proposals: propose, verify, accept, roll back; or plain steps where none pays.

A cycle waits for the device once, for the target's choices. The next draft and its verify pass are launched before the
tokens are handed out, so whoever consumes them does so while the device works.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.decoding.acceptance import accepted_prefix
from engine.decoding.controller import Choice
from engine.decoding.logprobs import read_logprobs
from engine.decoding.steps import Decoding, Step, read_ids
from engine.drafters.protocol import Foreseen

TIMED_EVERY = 8  # one cycle in so many is timed part by part; that costs it the overlap with the consumer


@dataclass(slots=True)
class Flight:
    """A launched pass over ``block`` [k+1], the anchor and k proposals. ``result``: of a cycle [k+2], the target's k+1 choices,
    then how many of the proposals it accepted; of a plain step [1], its choice. ``taps`` and ``logprobs`` (where asked for) are
    the pass's rows. ``start`` is when its launch began."""

    choice: Choice
    proposed: int
    taps: mx.array | None
    block: mx.array
    result: mx.array
    logprobs: mx.array | None
    start: float
    draft_s: float | None = None
    verify_s: float | None = None


def decode_speculative(state: Decoding) -> Generator[Step]:
    """Yields the first token, then one ``Step`` a cycle or plain step, until a stop token, the limit or cancel."""
    if state.recall is not None:
        state.recall.extend(state.committed)  # the prompt, while the device works on the first token
    run = Run(state)
    tokens, run.ended = state.cut(read_ids(state.anchor), 0)
    run.remember(tokens)
    if not tokens:
        return
    step = Step(tuple(tokens), 0, 0, logprobs=read_logprobs(state.anchor_logprobs, tokens))
    first = True  # handed out at once: what is launched before it would count for its wait and not for decoding
    while True:
        flight, choice = None, None if run.ended else state.policy.choose(run.ahead)
        timed = choice is not None and not choice.plain and run.next_cycle_is_timed()
        if choice is not None and not timed and not first:
            flight = run.launch(choice)
        yield step
        first = False
        if choice is None or state.cancel.is_set():
            return
        if flight is None:  # timed: nothing else may run beside it
            flight = run.launch(choice, timed=timed)
        step = (yield from run.plain_stretch(flight)) if choice.plain else run.land(flight)


class Run:
    """The moving parts of one answer. ``rows`` are tap rows committed but not yet given to the draft, in order."""

    def __init__(self, state: Decoding):
        self.state, self.rows = state, [] if state.tap_rows is None else [state.tap_rows]
        self.produced = self.cycles = 0
        self.ended = False

    @property
    def ahead(self) -> Sequence[Foreseen]:
        """What a lookup could propose."""
        return self.state.recall.ahead if self.state.recall is not None else ()

    def next_cycle_is_timed(self) -> bool:
        return self.cycles % TIMED_EVERY == 1

    def launch(self, choice: Choice, timed: bool = False) -> Flight:
        """Builds and starts one pass. When ``timed``, draft and verify are run to their end one after the other."""
        start = time.perf_counter()
        if choice.plain:
            return self._launch_plain(choice, self.state.anchor, self.state.position, start)
        state = self.state
        length = state.narrowed(min(choice.length, state.max_tokens - self.produced)) - 1  # more could not be emitted
        proposals, draft_s = self._proposals(choice, length), None
        if timed and choice.source == "draft":
            draft_s = _timed(proposals)
        else:
            mx.async_eval(proposals)
        if state.widths is not None:
            proposals = proposals[: state.narrowed(proposals.shape[0] + 1) - 1]
        block = mx.concatenate([state.anchor, proposals])
        output = state.target.forward(block, state.cache, state.taps)
        choices = state.sampler.pick(output.logits, state.position + 1, block)
        logprobs = state.sampler.score(output.logits, choices)
        accepted = accepted_prefix(proposals, choices)
        result = mx.concatenate([choices, accepted.astype(mx.int32)[None]])
        flight = Flight(choice, proposals.shape[0], output.taps, block, result, logprobs, start, draft_s)
        if timed:
            flight.verify_s = _timed(result)
        else:
            mx.async_eval(result, *([] if logprobs is None else [logprobs]))
        return flight

    def _proposals(self, choice: Choice, length: int) -> mx.array:
        """Up to ``length`` tokens [k] from the chosen source."""
        state, proposals = self.state, None
        if choice.source == "lookup":
            assert state.recall is not None
            return mx.array(state.recall.propose(length), dtype=state.anchor.dtype)
        if state.session is not None:
            rows = mx.concatenate(self.rows) if self.rows else None
            self.rows = []
            proposals = state.session.propose(state.anchor, rows, state.position, length, state.committed)
        return state.anchor[:0] if proposals is None else proposals

    def land(self, flight: Flight) -> Step:
        """Waits for a cycle, rolls the target back to what stands, and moves the anchor."""
        state = self.state
        *choices, accepted = read_ids(flight.result)  # the cycle's one wait
        seconds = time.perf_counter() - flight.start
        if flight.verify_s is not None:
            seconds = (flight.draft_s or 0.0) + flight.verify_s
        state.target.rollback(state.cache, flight.proposed - accepted)
        state.sampler.advance(flight.block[: accepted + 1])
        if flight.taps is not None:
            self.rows.append(flight.taps[: accepted + 1])
        tokens = self._commit(choices[: accepted + 1])
        state.position += accepted + 1
        state.anchor = mx.array(tokens[-1:], dtype=state.anchor.dtype)
        self.cycles += 1
        self.observe(flight, accepted, seconds)
        source = flight.choice.source if flight.proposed else None
        logprobs, accepted = read_logprobs(flight.logprobs, tokens), min(accepted, len(tokens))
        return Step(tuple(tokens), flight.proposed, accepted, flight.draft_s, flight.verify_s, source=source, logprobs=logprobs)

    def observe(self, flight: Flight, accepted: int, seconds: float) -> None:
        """Tells the policy what a cycle brought."""
        self.state.policy.observe(flight.choice, flight.proposed, accepted, seconds)

    def plain_stretch(self, flight: Flight) -> Generator[Step, None, Step]:
        """Plain steps, each launched before the one ahead of it is waited for; returns the last one instead of yielding it."""
        state, left, taken = self.state, flight.choice.steps, 0
        start = earlier = time.perf_counter()
        while True:
            left, taken = left - 1, taken + 1
            # What the last token brought back is known one step late: the step after it is under way already.
            more = left > 0 and self.produced + 1 < state.max_tokens and not state.policy.wakes(self.ahead)
            following = self._launch_plain(flight.choice, flight.result, state.position + 1, earlier) if more else None
            tokens = self._commit(read_ids(flight.result))
            now = time.perf_counter()
            if flight.taps is not None:
                self.rows.append(flight.taps)
            state.position += 1
            state.anchor = flight.result
            logprobs, parked = read_logprobs(flight.logprobs, tokens), flight.choice.parked
            step = Step(tuple(tokens), 0, 0, None, now - earlier, plain=True, parked=parked, logprobs=logprobs)
            if self.ended or following is None or state.cancel.is_set():
                # The first step shared the device with nothing; a stretch of one is all launch and tells too little.
                state.policy.observe_plain(taken, now - start if taken > 1 else math.nan)
                return step
            yield step
            flight, earlier = following, now

    def _launch_plain(self, choice: Choice, anchor: mx.array, position: int, start: float) -> Flight:
        sampler, output = self.state.sampler, self.state.target.forward(anchor, self.state.cache, self.state.taps)
        chosen = sampler.pick(output.logits, position + 1, anchor).astype(anchor.dtype)
        sampler.advance(anchor)
        logprobs = sampler.score(output.logits, chosen)
        mx.async_eval(*(array for array in (chosen, output.taps, logprobs) if array is not None))
        return Flight(choice, 0, output.taps, anchor, chosen, logprobs, start)

    def _commit(self, choices: list[int]) -> list[int]:
        tokens, self.ended = self.state.cut(choices, self.produced)
        self.remember(tokens)
        return tokens

    def remember(self, tokens: list[int]) -> None:
        """Adds ``tokens`` to the answer, and tells the policy which of them a lookup foresaw."""
        self.produced += len(tokens)
        self.state.committed += tokens
        if self.state.recall is not None:
            self.state.policy.observe_foreseen(self.state.recall.extend(tokens))


def _timed(array: mx.array) -> float:
    start = time.perf_counter()
    mx.eval(array)
    return time.perf_counter() - start
