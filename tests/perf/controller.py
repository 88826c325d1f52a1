"""Benchmark: the controller beside plain decoding and every fixed block length, on each prompt of the suite.

    python -m tests.perf.controller OUT.json [--model PAIR] [--max-tokens N] [--only PREFIX ...] [--seconds S]

For each prompt all settings run one after the other, then again in the opposite order, so that a slow minute of the machine meets
all of them; of the two rates of a setting the better counts. OUT.json is written after every prompt, and what it holds already is
not measured again: call it again until nothing is left. ``--seconds`` starts no further prompt after so long. Goals: on no prompt
slower than 0.97 of plain decoding, and within 5 % of the best fixed setting, which only hindsight knows.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

from engine import Finished, GenerationRequest, Mode, load
from engine.bench.environment import environment
from engine.bench.suite import Prompt, read_suite
from engine.engine import Engine

DRAFT_LENGTHS = (2, 3, 4, 6, 8, 12, 16)
LOOKUP_LENGTHS = (4, 8, 16, 32, 64)
SETTINGS: dict[str, tuple[Mode, int | None]] = {
    "plain": ("baseline", None),
    "controller": ("auto", None),
    "lookup": ("lookup", None),
    **{f"draft {length}": ("dflash", length) for length in DRAFT_LENGTHS},
    **{f"lookup {length}": ("lookup", length) for length in LOOKUP_LENGTHS},
}
FIXED = [name for name in SETTINGS if name not in ("controller", "lookup")]  # plain decoding is the length of one slot
NEVER_SLOWER, NEAR_BEST = 0.97, 0.95


def answer(engine: Engine, prompt: Prompt, setting: str, max_tokens: int) -> Finished:
    """One answer to ``prompt``."""
    mode, length = SETTINGS[setting]
    *_, end = engine.generate(GenerationRequest(prompt.messages, mode=mode, max_tokens=max_tokens, block_length=length))
    assert isinstance(end, Finished)
    return end


def measure(engine: Engine, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
    """Both rates of every setting, and what the controller's better answer was made of."""
    rates: dict[str, list[float]] = {name: [] for name in SETTINGS}
    ends: dict[str, Finished] = {}
    for order in (list(SETTINGS), list(reversed(SETTINGS))):
        for name in order:
            end = answer(engine, prompt, name, max_tokens)
            rates[name].append(end.statistics.decode_tok_s)
            if rates[name][-1] == max(rates[name]):
                ends[name] = end
    return record(rates, ends)


def record(rates: dict[str, list[float]], ends: dict[str, Finished]) -> dict[str, Any]:
    """What is kept of a prompt: its rates by setting, and what the controller's answer among ``ends`` was made of."""
    chosen = ends["controller"].statistics
    return {
        "tokens": chosen.completion_tokens,
        "rates": rates,
        "tokens_per_cycle": chosen.tokens_per_cycle,
        "lookup_share": chosen.lookup_accepted / max(1, chosen.completion_tokens - 1),
        "parked_cycles": chosen.parked_cycles,
        "identical": all(end.token_ids == ends["plain"].token_ids for end in ends.values()),
    }


def ratios(run: dict[str, Any]) -> dict[str, Any]:
    """The controller against plain decoding and against the best fixed setting; None for an answer of one token."""
    best = {name: max(rates) for name, rates in run["rates"].items()}
    fixed = max(FIXED, key=best.__getitem__)
    if not best["plain"]:
        return {"best": fixed, "plain": None, "fixed": None, "lookup": None}
    return {
        "best": fixed,
        "plain": best["controller"] / best["plain"],
        "fixed": best["controller"] / best[fixed],
        "lookup": best["lookup"] / best["plain"],
    }


def foresight(runs: dict[str, dict[str, Any]]) -> list[float]:
    """For each prompt, what the fixed setting that is best on all the others makes of its own best: fixing without hindsight."""
    rates = [{name: max(run["rates"][name]) for name in FIXED} for run in runs.values() if max(run["rates"]["plain"])]
    total = {name: sum(math.log(max(row[name], 1e-3)) for row in rates) for name in FIXED}
    kept = []
    for row in rates:
        without = {name: total[name] - math.log(max(row[name], 1e-3)) for name in FIXED}
        kept.append(row[max(FIXED, key=without.__getitem__)] / max(row.values()))
    return kept


def print_table(runs: dict[str, dict[str, Any]]) -> None:
    """A row a prompt, then both goals."""
    print(f"{'prompt':<20} {'tokens':>6} {'plain':>7} {'x plain':>8} {'lookup alone':>12} {'best fixed':>11} {'x best':>7}  texts")
    found = {name: ratios(run) for name, run in runs.items()}
    for name, row in found.items():
        run, plain = runs[name], max(runs[name]["rates"]["plain"])
        if row["plain"] is None:
            print(f"{name:<20} {run['tokens']:>6}  an answer too short to have a rate")
            continue
        print(
            f"{name:<20} {run['tokens']:>6} {plain:>7.1f} {row['plain']:>8.2f} {row['lookup']:>12.2f} {row['best']:>11} "
            f"{row['fixed']:>7.2f}  {'identical' if run['identical'] else 'DIFFERENT'}"
        )
    known = [row for row in found.values() if row["plain"] is not None]
    for goal, key, limit in (("plain decoding", "plain", NEVER_SLOWER), ("the best fixed setting", "fixed", NEAR_BEST)):
        values = sorted(row[key] for row in known)
        if values:
            kept = sum(value >= limit for value in values)
            print(
                f"Over {goal}: median {statistics.median(values):.2f}, lowest {values[0]:.2f}; "
                f"{kept} of {len(values)} reach {limit}."
            )
    if len(known) > 1:
        blind = foresight(runs)
        print(
            f"A setting fixed by the other prompts: median {statistics.median(blind):.2f} of the best, lowest {min(blind):.2f}; "
            f"{sum(value >= NEAR_BEST for value in blind)} of {len(blind)} reach {NEAR_BEST}."
        )
    for kind in ("copy", "edit"):
        values = [row["plain"] for name, row in found.items() if name.startswith(kind) and row["plain"] is not None]
        if values:
            fast = sum(value >= 4 for value in values)
            print(f"{kind}: median {statistics.median(values):.2f} times plain, {fast} of {len(values)} reach 4.")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--only", nargs="*", default=[""], metavar="PREFIX")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    started, engine = time.monotonic(), load(options.model)
    report = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {"runs": {}}
    report |= {"environment": environment(engine.info), "max_tokens": options.max_tokens}
    prompts = [prompt for prompt in read_suite() if prompt.id.startswith(tuple(options.only))]
    for setting in SETTINGS:
        answer(engine, prompts[0], setting, 8)  # warms up
    for prompt in prompts:
        if prompt.id in report["runs"] or time.monotonic() - started > options.seconds:
            continue
        report["runs"][prompt.id] = measure(engine, prompt, options.max_tokens)
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps(report, indent=1), encoding="utf-8")
        part.replace(options.out)
        row = ratios(report["runs"][prompt.id])
        print(prompt.id, {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    print_table(report["runs"])
    left = sum(prompt.id not in report["runs"] for prompt in prompts)
    print(f"{len(report['runs'])} prompts measured, {left} left." + (" Call again to go on." if left else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
