"""Benchmark: prefill with the draft's context against plain prefill of the same prompt, in one process.

    python -m tests.perf.prefill [PAIR] [LENGTHS ...]

The two take turns chunk by chunk, so that whatever else the machine does meets both. Printed for each length: seconds of both,
their ratio, and MLX's peak memory above what was held before and the caches that the prompt leaves.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator

import mlx.core as mx

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
        if isinstance(outcome, Prefilled):
            mx.eval(outcome.logits)
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
    """Prints one JSON object."""
    engine = load(pair)
    words = engine._tokenizer.encode(TEXT)
    prompt = (words * (max(lengths) // len(words) + 1))[: max(lengths) + 1]
    for mode in ("baseline", "dflash"):  # warm up
        warm = Turn(engine, prompt[: 2 * engine.prefill_chunk], mode)
        while warm.advance():
            pass
    plain, dflash = Turn(engine, prompt, "baseline"), Turn(engine, prompt, "dflash")
    more = True
    while more:
        more = plain.advance()
        dflash.advance()
    figures = {
        str(length): {
            "plain_s": plain.seconds_at(length),
            "dflash_s": dflash.seconds_at(length),
            "ratio": dflash.seconds_at(length) / plain.seconds_at(length),
        }
        for length in lengths
    }
    print(json.dumps({"chunk": engine.prefill_chunk, "device": engine.info.device, "lengths": figures}, indent=1))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    named = arguments[:1] if arguments and not arguments[0].isdecimal() else ["starter"]
    sizes = [int(argument) for argument in arguments if argument.isdecimal()]
    main(named[0], sizes or [2_000, 4_000, 8_000])
