"""How a sampled draft should propose: its likeliest tokens, or draws with the target's own noise. Tokens per cycle of both.

    python -m tests.perf.proposals [SEEDS] [TOKENS]

Every cycle's draft pass makes both proposals; accepted is what agrees with the text that the target then wrote, which does not
depend on them. Cycles start where odd seeds' draws and even seeds' likeliest tokens made them start, so neither side is favoured.
"""

from __future__ import annotations

import statistics
import sys
from itertools import product

import mlx.core as mx

from engine import Finished, GenerationRequest, load
from engine.bench.suite import read_suite
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.protocol import Draw
from engine.engine import Engine

SETTINGS = ({"temperature": 0.7}, {"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.9}, {"temperature": 1.0, "top_p": 0.9})
PROMPTS, BLOCK = 12, 8
KINDS = ("likeliest", "drawn")


class Recorder:
    """Stands in for the drafter's choice, keeps both kinds of proposals and goes on with ``used``."""

    def __init__(self, drafter: DFlashDrafter):
        self._drafter, self._plain = drafter, drafter.choose
        self.used, self.cycles = KINDS[0], []

    def __call__(self, hidden: mx.array, anchor: mx.array, position: int, draw: Draw) -> mx.array:
        proposals = dict(zip(KINDS, (self._plain(hidden, anchor), self._plain(hidden, anchor, position, draw)), strict=True))
        self.cycles.append((position, {kind: ids.tolist() for kind, ids in proposals.items()}))
        return proposals[self.used]


def agreed(proposals: list[int], truth: tuple[int, ...]) -> int:
    """How many leading proposals are right."""
    return next((place for place, token in enumerate(proposals) if token != truth[place]), len(proposals))


def committed(engine: Engine, recorder: Recorder, settings: dict, seeds: int, tokens: int) -> dict[str, list[int]]:
    """Tokens that each cycle would commit by each kind of proposals."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    suite = read_suite()
    for seed, prompt in product(range(seeds), suite[:: max(1, len(suite) // PROMPTS)][:PROMPTS]):
        recorder.used, recorder.cycles = KINDS[seed % 2], []
        request = GenerationRequest(
            prompt.messages, "dflash", max_tokens=tokens, seed=seed, block_length=BLOCK, use_cache=False, **settings
        )
        (*_, end) = engine.generate(request)
        assert isinstance(end, Finished)
        for position, proposals in recorder.cycles:
            truth = end.token_ids[position - end.statistics.prompt_tokens :]
            if len(truth) >= BLOCK - 1:  # a last block that the end cuts short says too little
                for kind, ids in proposals.items():
                    found[kind].append(agreed(ids, truth) + 1)
    return found


def main(seeds: int = 3, tokens: int = 64) -> None:
    """Prints a line for each setting."""
    engine = load("starter")
    drafter = engine._drafters["dflash"]
    drafter.choose = recorder = Recorder(drafter)
    for settings in SETTINGS:
        found = committed(engine, recorder, settings, seeds, tokens)
        likeliest, drawn = (statistics.fmean(found[kind]) for kind in KINDS)
        cycles = len(found[KINDS[0]])
        print(
            f"{settings}: {cycles} cycles, likeliest {likeliest:.3f}, drawn {drawn:.3f}, {drawn / likeliest - 1:+.1%}", flush=True
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
