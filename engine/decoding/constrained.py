"""The loop of an answer that is held to a form, in every mode: like the speculative one, but no pass is launched ahead.

What may be chosen in a row depends on the tokens before it, so proposals are read on the host before the verify pass: one wait
more in a cycle. What the form leaves no choice of is proposed too, and costs no draft.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import replace

import mlx.core as mx

from engine.decoding.acceptance import accepted_prefix
from engine.decoding.baseline import decode_baseline
from engine.decoding.constraint import Guide
from engine.decoding.controller import Choice
from engine.decoding.logprobs import read_logprobs
from engine.decoding.speculative import Flight, Run, decode_speculative
from engine.decoding.steps import Decoding, Step, read_ids

FORCED_SLOTS = 16  # of a block that is filled up with what must follow: a pass of so many costs little more than a short one


def decode(state: Decoding, plain: bool) -> Generator[Step]:
    """The loop for ``state``. ``plain``: nothing is proposed."""
    if state.guide is not None:
        return decode_constrained(state, state.guide, plain)
    return decode_baseline(state) if plain else decode_speculative(state)


def decode_constrained(state: Decoding, guide: Guide, plain: bool = False) -> Generator[Step]:
    """Yields the first token, then one ``Step`` a cycle, until a stop token, the limit or cancel. ``plain``: proposes nothing."""
    if state.recall is not None:
        state.recall.extend(state.committed)
    run = _ConstrainedRun(state, guide, plain)
    tokens, run.ended = state.cut(read_ids(state.anchor), 0)
    run.remember(tokens)
    if not tokens:
        return
    yield Step(tuple(tokens), 0, 0, logprobs=read_logprobs(state.anchor_logprobs, tokens))
    while not run.ended and not state.cancel.is_set():
        choice = state.policy.choose(run.ahead)
        flight = run.launch(choice)
        step = run.land(flight)
        if choice.plain and not plain and not flight.proposed:
            step = replace(step, plain=True, parked=choice.parked, verify_s=time.perf_counter() - flight.start)
        yield step


class _ConstrainedRun(Run):
    """The moving parts of one answer, and its place in the form."""

    def __init__(self, state: Decoding, guide: Guide, plain: bool):
        super().__init__(state)
        self._guide, self._plain = guide, plain
        self._drafted = self._wanted = 0

    def launch(self, choice: Choice, timed: bool = False) -> Flight:
        start, state = time.perf_counter(), self.state
        room = state.max_tokens - self.produced
        wanted: list[int] = []
        if not choice.plain:
            wanted = read_ids(self._proposals(choice, state.narrowed(min(choice.length, room)) - 1))  # the wait more
        widest = 1 if self._plain else state.narrowed(min(max(choice.length, FORCED_SLOTS), room))
        path = self._guide.follow(wanted, widest - 1)
        slots = state.narrowed(len(path.tokens) + 1)
        proposals = mx.array(path.tokens[: slots - 1], dtype=state.anchor.dtype)
        self._wanted, self._drafted = len(wanted), min(path.drafted, slots - 1)
        block = mx.concatenate([state.anchor, proposals])
        output = state.target.forward(block, state.cache, state.taps)
        logits = self._guide.held(output.logits, path.masks[:slots])
        choices = state.sampler.pick(logits, state.position + 1, block)
        result = mx.concatenate([choices, accepted_prefix(proposals, choices).astype(mx.int32)[None]])
        source = replace(choice, source="lookup") if not self._drafted else choice
        return Flight(source, slots - 1, output.taps, block, result, state.sampler.score(logits, choices), start)

    def remember(self, tokens: list[int]) -> None:
        super().remember(tokens)
        self._guide.advance(tokens)

    def observe(self, flight: Flight, accepted: int, seconds: float) -> None:
        """Tells the policy of the source's own tokens only, one that the form refused being wrong; the time has more in it."""
        if flight.choice.plain:
            self.state.policy.observe_plain(1, math.nan)
        elif self._wanted:
            drafted = self._drafted
            self.state.policy.observe(flight.choice, min(drafted + 1, self._wanted), min(accepted, drafted), math.nan)
