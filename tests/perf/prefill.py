"""Benchmark: prefill with the draft's context against plain prefill of the same prompt, in one process.

    python -m tests.perf.prefill [PAIR] [LENGTHS ...]

The two take turns chunk by chunk, so that whatever else the machine does meets both. Printed for each length: the seconds of both
up to there, and their ratio.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator

from engine import load
from engine.engine import Engine
from engine.prefill.chunked import Prefilled, prefill

TEXT = "The harbour lay quiet under a thin fog while the keeper counted boats, nets, ropes and lamps once more. "


class Turn:
    """One mode's prefill, advanced chunk by chunk, and the seconds it took up to each of them."""

    def __init__(self, engine: Engine, prompt: list[int], mode: str):
        drafter = engine._drafters["dflash"] if mode == "dflash" else None
        self.cache = engine._target.make_cache()
        session = drafter.session() if drafter else None
        taps = drafter.taps if drafter else ()
        self._steps: Iterator[int | Prefilled] = prefill(
            engine._target, self.cache, prompt, session, taps, engine.prefill_chunk, threading.Event()
        )
        self.seconds = 0.0
        self.marks: dict[int, float] = {}

    def advance(self) -> bool:
        """Runs one chunk; False once the prompt is through."""
        start = time.perf_counter()
        outcome = next(self._steps)
        self.seconds += time.perf_counter() - start
        if isinstance(outcome, Prefilled):
            return False
        self.marks[outcome] = self.seconds
        return True

    def seconds_at(self, length: int) -> float:
        """Seconds until ``length`` tokens were in the caches, between two chunks in proportion."""
        before = max((mark for mark in self.marks if mark <= length), default=0)
        after = min(mark for mark in self.marks if mark >= length)
        if after == before:
            return self.marks[after]
        low = self.marks.get(before, 0.0)
        return low + (self.marks[after] - low) * (length - before) / (after - before)


def main(pair: str, lengths: list[int]) -> None:
    """Prints one JSON object a length, as soon as it is reached."""
    engine = load(pair)
    print(json.dumps({"chunk": engine.prefill_chunk, "device": engine.info.device}), flush=True)
    words = engine._tokenizer.encode(TEXT)
    prompt = (words * (max(lengths) // len(words) + 1))[: max(lengths) + 1]
    for mode in ("baseline", "dflash"):  # warm up
        warm = Turn(engine, prompt[: 2 * engine.prefill_chunk], mode)
        while warm.advance():
            pass
    plain, dflash = Turn(engine, prompt, "baseline"), Turn(engine, prompt, "dflash")
    left, done = sorted(lengths), 0
    while left:
        plain.advance()
        dflash.advance()
        done = min(done + engine.prefill_chunk, len(prompt) - 1)
        while left and left[0] <= done:
            length = left.pop(0)
            plain_s, dflash_s = plain.seconds_at(length), dflash.seconds_at(length)
            print(json.dumps({"tokens": length, "plain_s": plain_s, "dflash_s": dflash_s, "ratio": dflash_s / plain_s}), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    named = arguments[:1] if arguments and not arguments[0].isdecimal() else ["starter"]
    sizes = [int(argument) for argument in arguments if argument.isdecimal()]
    main(named[0], sizes or [2_000, 4_000, 8_000])
