"""Benchmark: the starter pair on one prompt, by us and by mlx-dspark, in turns on the same machine.

    python -m venv RIVAL && RIVAL/bin/pip install mlx-dspark==0.20.3 'mlx[cpu]==0.32.4' mlx-lm==0.32.2
    python -m tests.perf.against_mlx_dspark RIVAL/bin/python [ROUNDS]

Both run the same fp32 target and draft weights; the rival, which knows no reduced vocabulary, proposes from all tokens. Its
best block length counts. Speed-ups are each one's DFlash over its own plain decoding; rates are medians in tokens a second.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from engine import GenerationRequest, load
from engine.engine import Engine
from tests.perf.expanded_pair import write_expanded

PROMPT = "Write a Python function that checks whether a string is a palindrome."
MAX_TOKENS = 128
TURNS = 3


def ours(engine: Engine, rounds: int) -> dict[str, list[float]]:
    """Decoding rates of both modes, taking turns."""
    rates: dict[str, list[float]] = {"baseline": [], "dflash": []}
    for number in range(rounds + 1):
        for mode, collected in rates.items():
            *_, end = engine.generate(GenerationRequest.of(PROMPT, mode=mode, max_tokens=MAX_TOKENS))
            if number:  # the first round warms up
                collected.append(end.statistics.decode_tok_s)
    return rates


def main(rival: str, rounds: int) -> None:
    """Prints one JSON object."""
    from engine.models import ensure_starter

    pair, engine = ensure_starter(), load("starter")
    assert pair.draft is not None
    mine: dict[str, list[float]] = {"baseline": [], "dflash": []}
    theirs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_expanded(pair.target, pair.draft, Path(folder))
        target, draft = Path(folder) / "target", Path(folder) / "draft"
        script = Path(__file__).with_name("rival_mlx_dspark.py")
        command = [rival, str(script), str(target), str(draft), PROMPT, str(MAX_TOKENS), str(rounds)]
        for _ in range(TURNS):
            for mode, rates in ours(engine, rounds).items():
                mine[mode] += rates
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
            for name, rates in json.loads(run.stdout.splitlines()[-1])["rates"].items():
                theirs.setdefault(name, []).extend(rates)
    medians = {name: statistics.median(rates) for name, rates in {**mine, **theirs}.items()}
    best = max((name for name in theirs if name != "plain"), key=lambda name: medians[name])
    print(
        json.dumps(
            {
                "ours": {"speedup": medians["dflash"] / medians["baseline"]},
                "mlx-dspark": {"speedup": medians[best] / medians["plain"], "best": best},
                "dflash_over_rival": medians["dflash"] / medians[best],
                "tok_s": medians,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
