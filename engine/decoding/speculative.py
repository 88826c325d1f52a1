"""The one speculative loop, for every drafter: draft, verify, accept, roll back.

A cycle waits for the device once, for the target's choices. The next draft and its verify pass are launched before the
tokens are handed out, so whoever consumes them does so while the device works.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

import mlx.core as mx

from engine.decoding.acceptance import accepted_prefix
from engine.decoding.steps import Decoding, Step, read_ids

TIMED_EVERY = 16  # one cycle in so many is timed part by part; that costs it the overlap with the consumer


@dataclass(slots=True)
class _Flight:
    """A launched cycle. ``result`` [k+2]: the target's k+1 choices, then how many of the k proposals it accepted."""

    proposed: int
    taps: mx.array | None
    result: mx.array
    draft_s: float | None = None
    verify_s: float | None = None


def decode_speculative(state: Decoding) -> Generator[Step]:
    """Yields the first token, then one ``Step`` a cycle, until a stop token, the limit or cancel."""
    first, ended = state.cut(read_ids(state.anchor), 0)
    state.committed += first
    produced, cycle = len(first), 0
    flight = None if ended else _launch(state, state.tap_rows, produced, timed=False)
    yield Step(tuple(first), 0, 0)
    while flight is not None and not state.cancel.is_set():
        *choices, accepted = read_ids(flight.result)  # the cycle's one wait
        state.target.rollback(state.cache, flight.proposed - accepted)
        tokens, ended = state.cut(choices[: accepted + 1], produced)
        produced += len(tokens)
        state.position += accepted + 1
        state.committed += tokens
        state.anchor = mx.array(tokens[-1:], dtype=state.anchor.dtype)
        step = Step(tuple(tokens), flight.proposed, min(accepted, len(tokens)), flight.draft_s, flight.verify_s)
        cycle += 1
        if ended:
            yield step
            return
        rows = None if flight.taps is None else flight.taps[: accepted + 1]
        timed = cycle % TIMED_EVERY == 1
        if timed:  # nothing else may run beside a timed cycle
            yield step
            if state.cancel.is_set():
                return
            flight = _launch(state, rows, produced, timed)
        else:
            flight = _launch(state, rows, produced, timed)
            yield step


def _launch(state: Decoding, rows: mx.array | None, produced: int, timed: bool) -> _Flight:
    """Builds and starts one cycle. When ``timed``, draft and verify are run to their end one after the other."""
    assert state.session is not None
    length = min(state.block_length, state.max_tokens - produced) - 1  # more could not be emitted
    proposals = state.session.propose(state.anchor, rows, state.position, length, state.committed)
    draft_s = None
    if proposals is None:
        proposals = state.anchor[:0]
    elif timed:
        draft_s = _timed(proposals)
    else:
        mx.async_eval(proposals)
    output = state.target.forward(mx.concatenate([state.anchor, proposals]), state.cache, state.taps)
    choices = state.sampler.pick(output.logits, state.position + 1)
    accepted = accepted_prefix(proposals, choices)
    result = mx.concatenate([choices.astype(mx.int32), accepted.astype(mx.int32)[None]])
    flight = _Flight(proposals.shape[0], output.taps, result, draft_s)
    if timed:
        flight.verify_s = _timed(result)
    else:
        mx.async_eval(result)
    return flight


def _timed(array: mx.array) -> float:
    start = time.perf_counter()
    mx.eval(array)
    return time.perf_counter() - start
