"""The command ``train-draft``: its arguments, and what it prints while it works."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path
from typing import TextIO

from engine.bench.suite import read_suite
from engine.errors import RequestError
from engine.training.settings import (
    DataProgress,
    DraftPlan,
    Evaluated,
    Optimizer,
    TrainingEvent,
    TrainingFinished,
    TrainingSettings,
    TrainingStep,
)

SHOWN_EVERY = 10  # steps, where no terminal is there to rewrite a line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``train-draft``."""
    parser.add_argument("--target", required=True, help="the model to make a draft for: 'starter' or a folder")
    parser.add_argument("--output", type=Path, required=True, help="folder for the draft; an unfinished run there goes on")
    parser.add_argument("--minutes", type=float, help="how long to train (default 10)")
    parser.add_argument("--steps", type=int, help="how many steps to train, instead of --minutes")
    parser.add_argument("--data", type=Path, help="prompts or chats as JSON lines; the target answers every user turn itself")
    parser.add_argument("--self-play", type=int, metavar="N", help="questions the target invents (default 200 without --data)")
    parser.add_argument("--from", dest="first", type=Path, metavar="DRAFT", help="continue from this draft instead of a new one")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--block", type=int, default=16, help="longest block, the anchor counted")
    parser.add_argument("--taps", help="target layers to listen to, for instance 1,8,14,21,27")
    parser.add_argument("--vocabulary", type=int, metavar="K", help="let the draft propose only the K tokens said most often")
    parser.add_argument("--mask-token", type=int, metavar="ID")
    parser.add_argument("--rows", type=int, default=4, help="texts in a step: fewer need less memory")
    parser.add_argument("--slots", type=int, default=256, help="block slots in each text: fewer need less memory")
    parser.add_argument("--max-length", type=int, default=448, help="longest text in tokens")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--optimizer", choices=("muon", "adamw"), help="default: muon, but adamw on the CPU")
    parser.add_argument("--loss", choices=("dpace", "decay"), default="dpace")
    parser.add_argument("--evaluate-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--held-out", type=int, default=8, metavar="N", help="texts kept apart to judge the draft by")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restart", action="store_true", help="throw an unfinished run in --output away")


def train_draft(arguments: argparse.Namespace, cancel: threading.Event, out: TextIO = sys.stderr) -> int:
    """Runs the command; 0 when a draft better than where it began was written."""
    plan = _plan(arguments)
    _settings(arguments, "adamw")  # a value out of range is found before anything is loaded
    chats = [prompt.messages for prompt in read_suite(arguments.data)] if arguments.data else []
    invented = arguments.self_play if arguments.self_play is not None else 0 if chats else 200
    if arguments.steps is not None and arguments.minutes is not None:
        raise RequestError("--steps and --minutes both say when to end: give one of them.")
    if arguments.seed < 0:
        raise RequestError(f"seed is {arguments.seed}: choose 0 or more.")
    _check_output(arguments.output, arguments.restart)
    from engine.models import resolve_pair
    from engine.models.starter import ensure_starter

    pair = ensure_starter() if arguments.target == "starter" else resolve_pair(arguments.target)

    import mlx.core as mx  # only once the command is known to be right

    from engine.loading import missing_parts
    from engine.training.run import Source, TrainingRun, Workshop

    settings = _settings(arguments, "adamw" if mx.default_device() == mx.cpu else "muon")  # its products are slow on the CPU

    workshop = Workshop.load(pair.target)
    for notice in missing_parts(workshop.folder, workshop.tokenizer):
        print(f"slipstream: {notice}", file=sys.stderr)
    run = TrainingRun(
        workshop, arguments.output, settings, Source(chats, invented),
        plan=plan, first=arguments.first, mask=arguments.mask_token, cancel=cancel,
    )  # fmt: skip
    if arguments.restart:
        run.forget()
    end = None
    for event in run.events():
        _show(event, out)
        if isinstance(event, TrainingFinished):
            end = event
    assert end is not None
    if end.best <= end.before:
        print("slipstream: no draft better than that: train for longer or on more text.", file=out)
        return 1
    return 0


def _check_output(folder: Path, restart: bool) -> None:
    """A folder with a model, or with a finished draft, is nobody's to write over; an unfinished run's own is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"{folder} cannot be made ({error.strerror}): give another folder for the draft.") from error
    if not (folder / "config.json").exists() or (folder / "run-state.safetensors").exists():
        return
    draft = "DFlash" in (folder / "config.json").read_text(encoding="utf-8", errors="replace")
    if not draft:
        raise RequestError(f"{folder} holds a model: give another folder for the draft.")
    if not restart:
        raise RequestError(f"{folder} holds a finished draft: give another folder, or --restart to write over it.")


def _settings(arguments: argparse.Namespace, optimizer: Optimizer) -> TrainingSettings:
    minutes = 10.0 if arguments.minutes is None else arguments.minutes
    seconds = None if arguments.steps is not None else 60 * minutes
    return TrainingSettings(
        steps=arguments.steps,
        seconds=seconds,
        rows=arguments.rows,
        slots=arguments.slots,
        max_length=arguments.max_length,
        rate=arguments.rate,
        optimizer=arguments.optimizer or optimizer,
        loss=arguments.loss,
        evaluate_every=arguments.evaluate_every,
        held_out=arguments.held_out,
        seed=arguments.seed,
    )


def _plan(arguments: argparse.Namespace) -> DraftPlan:
    try:
        taps = None if arguments.taps is None else tuple(int(tap) for tap in arguments.taps.split(","))
    except ValueError as error:
        raise RequestError(f"--taps is {arguments.taps!r}: give layer numbers, for instance 1,8,14,21,27.") from error
    return DraftPlan(arguments.layers, arguments.block, taps, arguments.vocabulary)


def _show(event: TrainingEvent, out: TextIO) -> None:
    terminal = out.isatty()
    start, end = ("\r\033[K", "") if terminal else ("", "\n")
    if isinstance(event, DataProgress) and (terminal or event.done == event.total):
        print(f"{start}{event.stage}: {event.done} of {event.total}", end=end, file=out, flush=True)
    elif isinstance(event, TrainingStep) and (terminal or event.step % SHOWN_EVERY == 0):
        of = "" if event.steps is None else f" of {event.steps}"
        left = "" if event.remaining_s is None else f", {_duration(event.remaining_s)} left"
        line = f"step {event.step}{of}: loss {event.loss:.3f}, {event.tau:.2f} tokens/cycle, {event.tokens_s:.0f} tokens/s{left}"
        print(start + line, end=end, file=out, flush=True)
    elif isinstance(event, Evaluated):
        kept = "  (best so far, written)" if event.best else ""
        line = f"step {event.step}: held-out {event.tau:.3f} tokens/cycle at blocks of {event.block_length}{kept}"
        print(start + line, file=out, flush=True)
    elif isinstance(event, TrainingFinished):
        print(start + _closing(event), file=out, flush=True)


def _closing(event: TrainingFinished) -> str:
    words = {"done": "Done", "cancelled": "Stopped", "diverged": "The loss became no number: stopped"}
    best = f"best {event.best:.3f} tokens/cycle at step {event.best_step}, {event.before:.3f} before"
    parts = [f"{words[event.reason]} after {event.steps} steps and {_duration(event.elapsed_s)}", best]
    return "; ".join([*parts, f"at most {event.peak_bytes / 1e9:.1f} GB of memory"])


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
