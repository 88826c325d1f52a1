"""Plain decoding: one token a step, the next step launched before the token is handed out."""

from __future__ import annotations

from collections.abc import Generator

import mlx.core as mx

from engine.decoding.logprobs import read_logprobs
from engine.decoding.steps import Decoding, Step, read_ids


def decode_baseline(state: Decoding) -> Generator[Step]:
    """Yields the first token, then one ``Step`` a token, until a stop token, the limit or cancel."""
    token, logprobs, position, produced = state.anchor, state.anchor_logprobs, state.position, 0
    while True:
        upcoming = _launch(state, token, position) if produced + 1 < state.max_tokens else None
        tokens, ended = state.cut(read_ids(token), produced)
        produced += len(tokens)
        state.committed += tokens
        if tokens:
            yield Step(tuple(tokens), 0, 0, logprobs=read_logprobs(logprobs, tokens))
        if ended or upcoming is None or state.cancel.is_set():
            return
        (token, logprobs), position = upcoming, position + 1


def _launch(state: Decoding, token: mx.array, position: int) -> tuple[mx.array, mx.array | None]:
    output = state.target.forward(token, state.cache)
    chosen = state.sampler.pick(output.logits, position + 1, token)
    state.sampler.advance(token)
    logprobs = state.sampler.score(output.logits, chosen)
    mx.async_eval(chosen, *([] if logprobs is None else [logprobs]))
    return chosen, logprobs
