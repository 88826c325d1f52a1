"""What the command line says to a person: the comparison table and the demo. Plain text, no colour, fits 100 columns."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from engine.bench.run import check_mode, run_suite
from engine.bench.suite import Prompt
from engine.events import LoadProgress, Mode
from engine.models.command import load_progress_line
from engine.request import Message

if TYPE_CHECKING:  # MLX must not be imported before load() has opened the fast BLAS
    from engine.engine import Engine

DEMO_PROMPTS = (
    Prompt("code", (Message("user", "Write a Python function that checks whether a string is a palindrome."),)),
    Prompt("list", (Message("user", "List the first twenty prime numbers."),)),
    Prompt("prose", (Message("user", "Explain how rainbows form."),)),
)
MEASURING = "Measuring which block lengths are exact here, once"
NAMES: dict[Mode, str] = {"dflash": "DFlash", "lookup": "lookup"}


def compare_prompts(
    engine: Engine,
    prompts: Sequence[Prompt],
    max_tokens: int,
    repeat: int,
    out: TextIO,
    cancel: threading.Event,
    mode: Mode = "dflash",
    exact: bool = False,
) -> dict[str, Any]:
    """Runs ``prompts`` plainly and in ``mode``, prints a line for each as it ends, and returns what ``run_suite`` does."""

    def show(_done: int, _total: int, run: dict[str, Any]) -> None:
        print(run_line(run), file=out, flush=True)

    check_mode(engine, mode)  # before anything is printed
    print(f"{engine.info.name} on {engine.info.device}, {engine.info.dtype}, block of {engine.info.block_length}", file=out)
    print(header(mode), file=out, flush=True)
    return run_suite(engine, prompts, max_tokens, repeat, show, cancel, mode, exact, measuring_line())


def measuring_line() -> Callable[[float], None] | None:
    """Shows how far measuring exact block lengths is, where a person looks, and nowhere else."""
    show = load_progress_line()
    return None if show is None else lambda fraction: show(LoadProgress(MEASURING, fraction))


def header(mode: Mode = "dflash") -> str:
    """The headings of ``run_line``'s columns."""
    return f"{'prompt':<22} {'plain':>10} {NAMES[mode]:>10} {'speed-up':>9} {'tokens/cycle':>13} {'accepted':>9}  texts"


def run_line(run: dict[str, Any]) -> str:
    """One run as a row under ``header``."""
    plain, other = run["baseline"], run[run["mode"]]
    rate = other["acceptance_rate"]
    return (
        f"{run['id'][:22]:<22} {plain['decode_tok_s']:>6.1f} t/s {other['decode_tok_s']:>6.1f} t/s {_times(run['speedup']):>9} "
        f"{other['tokens_per_cycle']:>13.2f} {'-' if rate is None else f'{rate:.0%}':>9}  {verdict_words(run)}"
    )


def verdict_words(run: dict[str, Any]) -> str:
    """The identity verdict of a bench run."""
    if run["identical"]:
        return f"identical, {run['completion_tokens']} tokens"
    where = run["first_divergence"]
    return f"differ at token {where['index']} (margin {where['margin']:.3g})"


def summary_lines(result: dict[str, Any]) -> list[str]:
    """The summary in words."""
    figures = result["summary"]
    if not figures["runs"]:
        return ["No prompt was finished."]
    efficiency = figures["efficiency"]
    return [
        f"Median: {_times(figures['speedup'])} plain decoding, {figures['tokens_per_cycle']:.2f} tokens a cycle, "
        f"slowest {_times(figures['slowest_speedup'])}" + ("." if efficiency is None else f"; loop efficiency {efficiency:.2f}."),
        f"{figures['identical_runs']} of {figures['runs']} texts identical.",
        *fallback_lines(result["runs"]),
    ]


def fallback_lines(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Why answers did not run as asked, each reason once: a column of rates alone would pass them off as that."""
    reasons = Counter(run[run["mode"]]["fallback"] for run in runs)
    return [f"{count} of {len(runs)} answers: {reason}" for reason, count in reasons.items() if reason]


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
