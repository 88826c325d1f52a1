"""Prefill in chunks: progress after each, cancel between them, and no vocabulary projection but for the last row.

Every mode uses the same chunks, so the caches a mode starts from never depend on the mode.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.drafters.protocol import DraftSession
from engine.prefix.recording import Recording
from engine.targets.protocol import Cache, Target


@dataclass(slots=True)
class Prefilled:
    """``logits`` [1, V] choose the first token; ``taps`` [1, n*H] is the last prompt row, not yet given to the drafter."""

    logits: mx.array
    taps: mx.array | None


def prefill(
    target: Target,
    cache: Cache,
    prompt: Sequence[int],
    session: DraftSession | None,
    taps: tuple[int, ...],
    chunk: int,
    cancel: threading.Event,
    recording: Recording | None = None,
) -> Iterator[int | Prefilled]:
    """Yields the number of prompt tokens done after each chunk, then ``Prefilled``. Ends early, without it, when cancelled.

    Taps are taken only of chunks that reach into what the draft can still see once the prompt is through, or that are recorded.
    ``recording`` says how many tokens ``cache`` and ``session`` hold already, and takes what each chunk adds.
    """
    ids = mx.array(list(prompt), dtype=mx.int32)
    last = len(prompt) - 1
    seen = 0 if session is None else session.first_seen(len(prompt))
    kept = recording.taps if recording is not None else ()
    for start in range(recording.tokens if recording is not None else 0, last, chunk):
        if cancel.is_set():
            return
        stop = min(start + chunk, last)
        heard = session is not None and stop > seen
        output = target.forward(ids[start:stop], cache, kept or (taps if heard else ()))
        pending = target.cache_arrays(cache)
        features = None if recording is None else recording.record(cache, start, stop, output.taps, pending)
        if session is not None and heard:
            pending += session.prefill(output.taps, start) if features is None else session.restore(features, start)
        mx.eval(pending)  # the logits stay unevaluated: their projection is never computed
        yield stop
    if cancel.is_set():
        return
    output = target.forward(ids[last:], cache, taps)
    yield Prefilled(output.logits, output.taps)
