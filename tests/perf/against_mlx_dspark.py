"""Benchmark: the starter pair by us and by mlx-dspark, prompt by prompt in turns on the same machine.

    python -m venv RIVAL && RIVAL/bin/pip install mlx-dspark==0.20.3 'mlx[cpu]==0.32.4' mlx-lm==0.32.2
    python -m tests.perf.against_mlx_dspark RIVAL/bin/python [--every N] [--rounds N]

The prompts are those of the suite that have one message, every Nth of them. Both run the same fp32 target and draft weights; the
rival, which knows no reduced vocabulary, proposes from all tokens. Ours chooses for itself; the rival is given every one of its
block lengths, and the best for each prompt, known afterwards, counts. Speed-ups are each one's DFlash over its own plain
decoding; rates are medians in tokens a second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from engine import GenerationRequest, load
from engine.bench.suite import read_suite
from engine.engine import Engine
from tests.perf.expanded_pair import write_expanded

MAX_TOKENS = 128


def ours(engine: Engine, prompt: str, rounds: int) -> dict[str, float]:
    """Decoding rates of both modes, taking turns, without kept prefixes, which the rival's calls have not either."""
    rates: dict[str, list[float]] = {"baseline": [], "dflash": []}
    for _ in range(rounds):
        for mode, collected in rates.items():
            request = GenerationRequest.of(prompt, mode=mode, max_tokens=MAX_TOKENS, use_cache=False)
            *_, end = engine.generate(request)
            collected.append(end.statistics.decode_tok_s)
    return {mode: statistics.median(collected) for mode, collected in rates.items()}


def main(rival: str, every: int, rounds: int) -> None:
    """Prints a JSON line for each prompt and one for all of them."""
    from engine.models import ensure_starter

    pair, engine = ensure_starter(), load("starter")
    assert pair.draft is not None
    prompts = [prompt for prompt in read_suite() if len(prompt.messages) == 1][::every]
    ours(engine, "Hello!", 1)  # warms up
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        write_expanded(pair.target, pair.draft, Path(folder))
        script = str(Path(__file__).with_name("rival_mlx_dspark.py"))
        command = [rival, script, f"{folder}/target", f"{folder}/draft", str(MAX_TOKENS), str(rounds)]
        environment = os.environ | {"HF_HUB_OFFLINE": "1"}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdin and process.stdout
            process.stdout.readline()  # it is ready: its loading must not slow ours
            for prompt in prompts:
                mine = ours(engine, prompt.messages[0].content, rounds)
                process.stdin.write(json.dumps(prompt.messages[0].content) + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                theirs = {name: statistics.median(rates) for name, rates in answer["rates"].items()}
                lines.append(compared(prompt.id, mine, theirs))
                print(json.dumps(lines[-1]), flush=True)
            process.stdin.close()
    print(json.dumps(summary(lines), indent=1))


def compared(name: str, mine: dict[str, float], theirs: dict[str, float]) -> dict[str, Any]:
    best = max((length for length in theirs if length != "plain"), key=theirs.__getitem__)
    return {
        "id": name, "ours": mine["dflash"] / mine["baseline"], "mlx-dspark": theirs[best] / theirs["plain"], "best": best,
        "dflash_over_rival": mine["dflash"] / theirs[best], "tok_s": mine | theirs,
    }  # fmt: skip


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    lengths = [name for name in lines[0]["tok_s"] if name.startswith("dflash ")]
    one_length = {length: statistics.median(line["tok_s"][length] / line["tok_s"]["plain"] for line in lines) for length in lengths}
    medians = {key: statistics.median(line[key] for line in lines) for key in ("ours", "mlx-dspark", "dflash_over_rival")}
    return {
        "prompts": len(lines), **medians, "mlx-dspark at one length": max(one_length.values()),
        "ours faster": sum(line["dflash_over_rival"] > 1 for line in lines),
        "plain over rival": statistics.median(line["tok_s"]["baseline"] / line["tok_s"]["plain"] for line in lines),
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rival", help="the Python of the rival's environment")
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.rival, arguments.every, arguments.rounds)
