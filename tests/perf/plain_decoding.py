"""Benchmark: plain decoding under our interface against ``mlx_lm.stream_generate`` on the same model in one process.

    python -m tests.perf.plain_decoding [ROUNDS]

The two take turns; each round gives one ratio, and their median is printed with its spread. Above 1: ours is faster.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

from engine import Finished, GenerationRequest, load
from engine.engine import Engine

PROMPT = "Explain how rainbows form."
TOKENS = 96


def ours(engine: Engine) -> float:
    """Decoding rate of one answer in tokens per second."""
    *_, end = engine.generate(GenerationRequest.of(PROMPT, mode="baseline", max_tokens=TOKENS))
    assert isinstance(end, Finished)
    return end.statistics.decode_tok_s


def theirs(engine: Engine) -> float:
    """The same by mlx-lm's own loop, its first token left out too."""
    from mlx_lm import stream_generate

    prompt = engine.encode(GenerationRequest.of(PROMPT).messages)
    arrivals = [time.perf_counter() for _ in stream_generate(engine._target.model, engine._tokenizer, prompt, max_tokens=TOKENS)]
    arrivals = arrivals[:TOKENS]  # its last response only repeats the end
    return (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])


def main(rounds: int) -> None:
    """Prints one JSON object."""
    engine = load("starter")
    ours(engine), theirs(engine)
    pairs = []
    for number in range(rounds):
        if number % 2:
            rival = theirs(engine)
            pairs.append((ours(engine), rival))
        else:
            pairs.append((ours(engine), theirs(engine)))
    ratios = sorted(mine / rival for mine, rival in pairs)
    result = {"ratio_median": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1]}
    result |= {"ours_tok_s": statistics.median(p[0] for p in pairs), "mlx_lm_tok_s": statistics.median(p[1] for p in pairs)}
    print(json.dumps(result | {"rounds": rounds, "device": engine.info.device}, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
