"""Prefills what the next prompt of a chat will begin with, while nobody waits, into the prefix cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator

from engine.prefill.chunked import prefill
from engine.prefix.cache import PrefixCache
from engine.targets.protocol import Target


def prefill_ahead(
    target: Target, prefix: PrefixCache | None, chunk: int, longest: int, coming: Callable[[], list[int]]
) -> Generator[None]:
    """One chunk a step, as far as whole chunks of ``coming`` go: the tokens that every next prompt begins with.

    Nothing is done where they fill a context of ``longest`` tokens or are kept already.
    """
    ids = coming()
    end = len(ids) // chunk * chunk
    if prefix is None or end >= longest or prefix.covered(ids[:end]) >= end:
        return
    cache, never = target.make_cache(), threading.Event()
    prompt = [*ids[:end], 0]  # prefill leaves the last token out
    with prefix.recording(prompt, cache, None, lambda beyond: [], never) as recording:
        for outcome in prefill(target, cache, prompt, None, (), chunk, never, recording):
            yield
            if outcome == end:
                return
