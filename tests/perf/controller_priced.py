"""Benchmark: the controller's choices apart from the machine's moods: every pass costs what a measured cost curve says.

    python -m tests.perf.controller_priced OUT.json --curve COSTS.json [--model PAIR] [--max-tokens N] [--every K] [--seconds S]

The engine really decodes, so acceptance is real; only the clock is replaced, for the controller and for the rates alike, so the
figures are the same on a busy machine. COSTS.json is a ``costs-*.json`` that the engine kept in its cache folder on an idle one.
Settings, goals and the way to go on with OUT.json are those of ``tests.perf.controller``, whose timed figures these complete: they
say what was chosen well, not how fast the machine is. Fixed lookups are left out where lookup alone gains nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import Cycle, Finished, GenerationRequest, load
from engine.bench.environment import environment
from engine.bench.suite import Prompt, read_suite
from engine.decoding.controller import Choice, Controller
from engine.decoding.curve import CostCurve
from engine.engine import Engine
from tests.perf.controller import SETTINGS, print_table, ratios, record

GAINS = 1.02  # of plain decoding: below it lookup alone is not worth fixing


class PricedController(Controller):
    """A controller that is told no times: its costs are the curve's."""

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        super().observe(choice, proposed, accepted, math.nan)

    def observe_plain(self, steps: int, seconds: float) -> None:
        super().observe_plain(steps, math.nan)


def price(events: Sequence[Any], curve: CostCurve) -> float:
    """Seconds of an answer's cycles by ``curve``; the first token is prefill's and costs nothing here."""
    total = 0.0
    for event in events:
        if isinstance(event, Cycle):
            width = event.proposed + 1
            total += curve.cycle(width) if event.source == "draft" else curve.verify(width)
    return total


def answer(engine: Engine, prompt: Prompt, setting: str, max_tokens: int, curve: CostCurve) -> tuple[float, Finished]:
    """Tokens a priced second of one answer, and its end."""
    mode, length = SETTINGS[setting]
    events = list(engine.generate(GenerationRequest(prompt.messages, mode=mode, max_tokens=max_tokens, block_length=length)))
    end = events[-1]
    assert isinstance(end, Finished)
    seconds = price(events, curve)
    return (end.statistics.completion_tokens - 1) / seconds if seconds else 0.0, end


def measure(engine: Engine, prompt: Prompt, max_tokens: int, curve: CostCurve) -> dict[str, Any]:
    """A run as ``tests.perf.controller`` keeps it, with one priced rate a setting."""
    rates: dict[str, list[float]] = {}
    ends: dict[str, Finished] = {}
    for name in SETTINGS:
        if name.startswith("lookup ") and rates["lookup"][0] < GAINS * rates["plain"][0]:
            rates[name] = [0.0]
            continue
        rate, ends[name] = answer(engine, prompt, name, max_tokens, curve)
        rates[name] = [rate]
    return record(rates, ends)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--curve", type=Path, required=True)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--every", type=int, default=1, metavar="K", help="every K-th prompt")
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args(arguments)
    costs = json.loads(options.curve.read_text("utf-8"))
    curve = CostCurve(**{key: tuple(values) for key, values in costs.items()})
    started, engine = time.monotonic(), load(options.model)
    engine._controllers = {
        mode: PricedController(curve, max(known._all_lengths, default=1), known._odds)
        for mode, known in engine._controllers.items()
    }
    report = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {"runs": {}}
    report |= {"environment": environment(engine.info), "max_tokens": options.max_tokens, "curve": costs}
    for prompt in read_suite()[:: options.every]:
        if prompt.id in report["runs"] or time.monotonic() - started > options.seconds:
            continue
        report["runs"][prompt.id] = measure(engine, prompt, options.max_tokens, curve)
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps(report, indent=1), encoding="utf-8")
        part.replace(options.out)
        print(prompt.id, ratios(report["runs"][prompt.id]), flush=True)
    print_table(report["runs"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
