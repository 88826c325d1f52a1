"""The verb ``models`` of the command line: list, search, fetch, check, import and remove models."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.errors import ModelError, NotEnoughMemory, RequestError
from engine.events import LoadProgress
from engine.models.download_types import REPAIR, DownloadPlan, Progress
from engine.models.room import gigabytes

Interrupts = Callable[[], AbstractContextManager[threading.Event]]  # Ctrl-C sets the event


def add_arguments(models: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """The actions of ``models``; each sets ``run(arguments, interrupts)``, which returns the exit code."""
    actions = models.add_subparsers(dest="action", required=True, metavar="ACTION")
    shown = actions.add_parser("list", parents=[common], help="the catalog's pairs and the models on this machine")
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    shown.set_defaults(run_models=_list)
    search = actions.add_parser("search", parents=[common], help="look for models on the hub")
    search.add_argument("text", metavar="TEXT")
    search.add_argument("--limit", type=int, default=20, metavar="N")
    search.add_argument("--json", action="store_true", help="print one JSON list")
    search.set_defaults(run_models=_search)
    add = actions.add_parser("add", parents=[common], help="fetch a pair, or go on with it; Ctrl-C pauses")
    add.add_argument("pair", metavar="PAIR", help="catalog id, hub id or TARGET+DRAFT; a folder is only checked")
    add.add_argument("--no-draft", action="store_true", help="the target alone, to run with lookup")
    add.set_defaults(run_models=_add)
    verify = actions.add_parser("verify", parents=[common], help="check every file by its hash")
    verify.add_argument("pair", metavar="PAIR", nargs="?", default="starter")
    verify.add_argument("--repair", action="store_true", help="fetch what is damaged")
    verify.set_defaults(run_models=_verify)
    remove = actions.add_parser("remove", parents=[common], help="delete a model or an unfinished download")
    remove.add_argument("pair", metavar="PAIR")
    remove.set_defaults(run_models=_remove)
    gguf = actions.add_parser("import-gguf", parents=[common], help="turn a llama GGUF into a model folder, exactly")
    gguf.add_argument("file", type=Path, metavar="FILE.gguf")
    gguf.add_argument("folder", type=Path, metavar="FOLDER")
    gguf.set_defaults(run_models=_import)


def _list(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import fits, installed, list_downloads, list_pairs

    pairs, downloads = list_pairs(), list_downloads()
    listed = {name for pair in pairs for name in (pair.id, pair.target, pair.draft)}
    others = [model for model in installed() if model.id not in listed]
    if arguments.json:
        record = {
            "pairs": [asdict(pair) | {"fits": _plain(fits(pair.id))} for pair in pairs],
            "installed": [asdict(model) | {"path": str(model.path)} for model in others],
            "downloads": [{"id": each.id, "done_bytes": each.done_bytes, "total_bytes": each.total_bytes, "running": each.running}
                          for each in downloads],
        }  # fmt: skip
        print(json.dumps(record))
        return 0
    for pair in pairs:
        fit = fits(pair.id)
        size = pair.size_bytes or pair.download_bytes or 0
        print(f"{pair.id:<20} {pair.state:<11} {gigabytes(size):>9}  {pair.name}: {fit.words if fit else pair.description}")
    for model in others:
        words = f"{model.source}: {model.problem}" if model.problem else model.source
        print(f"{model.id:<20} {model.state:<11} {gigabytes(model.bytes):>9}  {words}")
    for each in downloads:
        state = "running" if each.running else "paused"
        print(f"{each.id:<20} {state:<11} {gigabytes(each.total_bytes):>9}  {gigabytes(each.done_bytes)} are here")
    return 0


def _plain(record: Any) -> dict[str, Any] | None:
    return None if record is None else asdict(record)


def _search(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import fits, search_hub

    if not 1 <= arguments.limit <= 100:
        raise RequestError("--limit takes 1 to 100 models.")
    found = search_hub(arguments.text, arguments.limit)
    if arguments.json:
        print(json.dumps([asdict(model) | {"fits": _plain(fits(model))} for model in found]))
        return 0
    for model in found:
        fit = fits(model)
        size = gigabytes(model.size_bytes) if model.size_bytes is not None else "?"
        facts = [model.family or "unknown family", "draft " + model.draft if model.draft else "no draft known"]
        facts += ["gated"] if model.gated else []
        facts.append((fit.words if fit else "size unknown") if model.supported else "does not run here")
        print(f"{model.repository:<50} {size:>9}  {', '.join(facts)}")
    if not found:
        print(f"The hub has no model named like {arguments.text!r}.", file=sys.stderr)
    return 0


def _add(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import ensure_starter, list_downloads, plan_download

    if arguments.pair == "starter":
        with interrupts() as cancel:
            pair = ensure_starter(load_progress_line(), cancel, full=True)
        print(f"starter is ready in {pair.target}")
        return 0
    if _is_here(arguments.pair):
        return _ready(arguments.pair)
    begun = [state.plan for state in list_downloads() if arguments.pair in (state.id, state.plan.repositories[0])]
    plan = begun[0] if begun else plan_download(arguments.pair, with_draft=not arguments.no_draft)
    if plan.no_draft_reason:
        print(f"slipstream: {plan.no_draft_reason}.", file=sys.stderr)
    return _fetch(plan, f"slipstream models add {arguments.pair}", interrupts)


def _is_here(pair: str) -> bool:
    """Whether ``pair`` is a model folder, or one and a draft: nothing of it is the hub's."""
    starts = [pair, *(pair[:index] for index, character in enumerate(pair) if character == "+")]
    return any(Path(start).expanduser().is_dir() for start in starts)


def _fetch(plan: DownloadPlan, again: str, interrupts: Interrupts) -> int:
    from engine.models import Downloader

    last: list[Progress] = []

    def show(progress: Progress) -> None:
        last[:] = [progress]
        if sys.stderr.isatty():
            print(f"\r\033[K{progress_words(progress)}", end="", file=sys.stderr, flush=True)

    with interrupts() as pause:
        outcome = Downloader(plan, on_progress=show, pause=pause).run()
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if outcome == "done":
        return _ready(plan.id.removeprefix(REPAIR))
    here = f" at {gigabytes(last[0].done)} of {gigabytes(last[0].total)}" if last else ""
    print(f"slipstream: Paused{here}: `{again}` goes on from there.", file=sys.stderr)
    return 1


def _ready(model: str) -> int:
    """Says so where ``model`` can be loaded. Raises ``ModelError`` where names or shapes of its weights say that it cannot."""
    import engine

    try:
        engine.check(model)
    except NotEnoughMemory as error:
        print(f"slipstream: {error}", file=sys.stderr)  # perhaps for another machine, or for --no-memory-check
    print(f"{model} is ready: slipstream generate --model {model} --prompt ...")
    return 0


def progress_words(progress: Progress) -> str:
    """One line of a download, for a terminal."""
    parts = [f"{gigabytes(progress.done)} of {gigabytes(progress.total)}"]
    if progress.note:
        parts.append(progress.note)
    elif progress.phase == "checking":
        parts.append(f"checking {progress.file}")
    elif progress.bytes_per_s > 0:
        parts.append(f"{gigabytes(round(progress.bytes_per_s))}/s")
        if progress.remaining_s is not None:
            minutes, seconds = divmod(round(progress.remaining_s), 60)
            parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return " · ".join(parts)


def _verify(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import plan_repair, verify_model, verify_starter

    if arguments.pair == "starter":
        if arguments.repair:
            return _add(argparse.Namespace(pair="starter"), interrupts)
        verify_starter()
        print("starter: every file is as it was set up")
        return 0
    if arguments.repair:
        plan = plan_repair(arguments.pair)
        again = f"slipstream models verify {arguments.pair} --repair"
        return _fetch(plan, again, interrupts) if plan.files else _whole(arguments.pair)
    with interrupts() as cancel:
        damaged = verify_model(arguments.pair, cancel=cancel)
    if damaged:
        names = ", ".join(damaged)
        raise ModelError(f"{arguments.pair} is damaged ({names}): run `slipstream models verify {arguments.pair} --repair`.")
    return _whole(arguments.pair)


def _whole(pair: str) -> int:
    print(f"{pair}: every file is whole")
    return 0


def _remove(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import delete_model, discard, list_downloads

    unfinished = [state.id for state in list_downloads() if arguments.pair in (state.id, state.plan.repositories[0])]
    freed = sum(discard(each) for each in unfinished)
    if not unfinished:
        freed = delete_model(arguments.pair)
    print(f"{arguments.pair} is removed: {gigabytes(freed)} are free again")
    return 0


def _import(arguments: argparse.Namespace, interrupts: Interrupts) -> int:
    from engine.models import import_gguf

    show = load_progress_line()
    with interrupts() as cancel:
        import_gguf(
            arguments.file,
            arguments.folder,
            None if show is None else lambda part: show(LoadProgress("Importing", part)),
            cancel,
        )
    print(f"{arguments.folder} is ready: slipstream generate --model {arguments.folder} --prompt ...")
    return 0


def load_progress_line() -> Callable[[LoadProgress], None] | None:
    """Shows loading steps where a person looks, nowhere else."""
    if not sys.stderr.isatty():
        return None

    def show(step: LoadProgress) -> None:
        percent = "" if step.fraction is None else f" {step.fraction:.0%}"
        print("\r\033[K" + (f"{step.stage}{percent}" if step.fraction != 1.0 else ""), end="", file=sys.stderr, flush=True)

    return show
