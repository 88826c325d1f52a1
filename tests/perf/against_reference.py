"""Benchmark: the embedded prompts by us and by z-lab's own MLX loop (PyPI ``dflash`` 0.1.0), same weights, on the same device.

    python -m tests.perf.expanded_pair TARGET DRAFT PAIR bfloat16
    PYTHONPATH=UNPACKED_DFLASH python -m tests.perf.against_reference PAIR OUT.json [--max-tokens 200] [--blocks 8,16]

Ours runs PAIR/target+PAIR/reduced, the loop PAIR/target with PAIR/draft (it knows no reduced vocabulary) at each block length, and
mlx-lm's plain decoding. Speed-ups are each program's DFlash over its own plain decoding; the loop's best block length counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine import compare_tokens, load
from engine.bench.run import run_suite
from engine.bench.suite import read_suite


def reference(pair: Path, prompts: list[dict[str, Any]], max_tokens: int, blocks: str, rounds: int) -> list[dict[str, Any]]:
    """What the loop measured, a record a prompt."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(prompt) + "\n" for prompt in prompts)
        file.flush()
        script = str(Path(__file__).with_name("reference_loop.py"))
        folders = [str(pair / "target"), str(pair / "draft")]
        command = [sys.executable, script, *folders, file.name, str(max_tokens), blocks, str(rounds)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    return json.loads(run.stdout.splitlines()[-1])


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of each block length, and how often the loop's text was mlx-lm's plain text."""
    result: dict[str, Any] = {"plain_tok_s": statistics.median(record["plain"]["tok_s"] for record in records)}
    for name in (name for name in records[0] if name.startswith("dflash")):
        verdicts = [compare_tokens(record["plain"]["tokens"], record[name]["tokens"]) for record in records]
        result[name] = {
            "tok_s": statistics.median(record[name]["tok_s"] for record in records),
            "speedup": statistics.median(record[name]["tok_s"] / record["plain"]["tok_s"] for record in records),
            "tokens_per_cycle": statistics.median(record[name]["tokens_per_cycle"] or 1.0 for record in records),
            "identical": sum(verdict.identical for verdict in verdicts),
            "first_divergence": sorted(v.first_difference for v in verdicts if v.first_difference is not None),
        }
    return result


def main(arguments: argparse.Namespace) -> None:
    """Writes OUT and prints the two summaries."""
    engine = load(f"{arguments.pair / 'target'}+{arguments.pair / 'reduced'}")
    prompts = read_suite(None)[: arguments.prompts]
    ids = [{"id": prompt.id, "ids": engine.encode(prompt.messages)} for prompt in prompts]
    ours = run_suite(engine, prompts, arguments.max_tokens, repeat=arguments.rounds)
    engine.close()
    theirs = reference(arguments.pair, ids, arguments.max_tokens, arguments.blocks, arguments.rounds)
    report = {"ours": ours, "reference": {"runs": theirs, "summary": summary(theirs)}}
    arguments.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps({"ours": ours["summary"], "reference": report["reference"]["summary"]}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("pair", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--blocks", default="8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=None)
    main(parser.parse_args())
