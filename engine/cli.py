"""The command line: one verb a capability, thin. Exit codes: 0 done, 1 the work failed, 2 the command was wrong."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from engine import (
    ExactnessProgress,
    Finished,
    GenerationRequest,
    LoadOptions,
    Notice,
    RequestError,
    SlipstreamError,
    TextDelta,
    __version__,
    load,
)
from engine.errors import UnknownModel
from engine.models.command import add_arguments as add_models_arguments
from engine.models.command import load_progress_line
from engine.options import BITS
from engine.request import MODES, OVERFLOWS, SCORERS
from engine.sampling_options import add_sampling_options, asked_form, refuse_what_has_no_effect, sampling_settings, sparse_settings
from engine.server.command import add_arguments as add_serve_arguments
from engine.training.command import add_arguments as add_train_arguments

if TYPE_CHECKING:
    from engine.engine import Engine

DEMO_TOKENS = 96
UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF, errno.EDQUOT})


def main(argv: Sequence[str] | None = None, checks: tuple[Sequence[Any], Sequence[Any]] = ((), ())) -> int:
    """Runs one verb and returns the exit code. Errors are one line on stderr; ``--debug`` shows where they came from.

    ``checks`` are what else the self-test does, before and after the engine's own; the doctor does the latter.
    """
    arguments = _parser().parse_args(argv)
    arguments.checks = checks
    logging.basicConfig(format="slipstream: %(message)s", level=logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character must not end the answer
    try:
        code = arguments.run(arguments)
        print(end="", flush=True)  # a reader that left is noticed here and not while the interpreter ends
        return code
    except BrokenPipeError:  # the reader left; let the interpreter's last flush succeed
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            return _report(arguments, error)  # some file's trouble; a stream has no name
        # A second failure while the interpreter ends would change the exit code and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"slipstream: the output cannot be written ({error.strerror}): give it another place.", file=sys.stderr)
        return 1
    except (Exception, KeyboardInterrupt) as error:
        return _report(arguments, error)


def _report(arguments: argparse.Namespace, error: BaseException) -> int:
    """One line on stderr, and the exit code."""
    if arguments.debug:
        traceback.print_exc()
    clear = "\r\033[K" if sys.stderr.isatty() else ""  # where a loading step may stand
    print(f"{clear}slipstream: {_one_line(error)}", file=sys.stderr)
    return 2 if isinstance(error, RequestError | UnknownModel) else 1


def demo(pair: str = "starter", out: TextIO | None = None) -> int:
    """The terminal comparison of both modes on three prompts, where there is no display."""
    from engine.terminal import DEMO_PROMPTS, compare_prompts, summary_lines

    out = out or sys.stdout
    with _cancel_on_interrupt() as cancel:
        engine = load(pair, progress=load_progress_line(), cancel=cancel)
        result = compare_prompts(engine, DEMO_PROMPTS, DEMO_TOKENS, 1, out, cancel)
    print(*summary_lines(result), sep="\n", file=out)
    return 0 if len(result["runs"]) == len(DEMO_PROMPTS) else 1


PAIR_HELP = "catalog id (starter) or TARGET_PATH[+DRAFT_PATH], each a folder or a hub id"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of printing the whole usage above it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"slipstream: {message}: see '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    debug_help = "show a traceback when something fails"
    common = Parser(add_help=False)
    common.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=debug_help)
    parser = Parser(
        prog="slipstream",
        description="Chat with local models, decoded speculatively. Without a verb: the window.",
    )
    parser.add_argument("--debug", action="store_true", help=debug_help)
    parser.add_argument("--version", action="version", version=f"slipstream {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    generate = verbs.add_parser("generate", parents=[common], help="answer one prompt")
    _add_generate_arguments(generate)
    generate.set_defaults(run=_generate)

    bench = verbs.add_parser("bench", parents=[common], help="both modes on a suite of prompts")
    _add_bench_arguments(bench)
    bench.set_defaults(run=_bench)

    serve = verbs.add_parser("serve", parents=[common], help="an OpenAI-compatible server for other programs")
    serve.add_argument("--model", required=True, metavar="PAIR", help=PAIR_HELP)
    add_serve_arguments(serve)
    _add_engine_options(serve)
    serve.set_defaults(run=_serve)

    train = verbs.add_parser("train-draft", parents=[common], help="make a draft for a model, on this machine")
    add_train_arguments(train)
    train.set_defaults(run=_train_draft)

    selftest = verbs.add_parser("selftest", parents=[common], help="check this installation on the starter pair")
    selftest.add_argument("--json", type=Path, metavar="OUT")
    selftest.add_argument("--device", choices=("cpu", "gpu"), help="where to compute; default: what MLX chooses")
    selftest.set_defaults(run=_selftest)

    doctor = verbs.add_parser("doctor", parents=[common], help="say what of this machine and installation is not fit")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument("--network", action="store_true", help="also ask the hub whether it can be reached")
    doctor.set_defaults(run=_doctor)

    models = verbs.add_parser("models", help="the models on this machine and on the hub")
    add_models_arguments(models, common)
    models.set_defaults(run=_models)
    return parser


def _add_generate_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--model", required=True, metavar="PAIR", help=PAIR_HELP)
    verb.add_argument("--prompt", required=True, metavar="TEXT", help="the prompt; - reads it from standard input")
    verb.add_argument("--mode", choices=MODES, default="auto")
    verb.add_argument("--max-tokens", type=int, default=512, metavar="N")
    add_sampling_options(verb)
    verb.add_argument("--seed", type=int, default=0, metavar="S")
    verb.add_argument("--no-cache", action="store_true", help="neither use nor fill the prefix cache")
    overflow = [policy.replace("_", "-") for policy in OVERFLOWS]
    verb.add_argument("--overflow", choices=overflow, default=overflow[0], help="when the chat does not fit the context")
    verb.add_argument("--sparse-prefill", type=float, metavar="KEEP", help="read only this share of the prompt: approximate")
    verb.add_argument("--sparse-scorer", choices=SCORERS, help="what --sparse-prefill keeps (default lexical)")
    _add_engine_options(verb)
    verb.add_argument("--json", action="store_true", help="print one JSON object instead of the text")


def _add_bench_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--model", required=True, metavar="PAIR", help=PAIR_HELP)
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--prompts", type=Path, metavar="FILE.jsonl", help="default: the built-in suite")
    which.add_argument("--suite", choices=("short", "full"), default="short", help="20 or all 60 prompts of the built-in suite")
    verb.add_argument("--mode", choices=("dflash", "lookup"), default="dflash", help="what is compared with plain decoding")
    verb.add_argument("--max-tokens", type=_positive, default=256, metavar="N")
    _add_engine_options(verb)
    verb.add_argument("--repeat", type=_positive, default=1, metavar="R")
    verb.add_argument("--json", type=Path, required=True, metavar="OUT")


def _add_engine_options(verb: argparse.ArgumentParser) -> None:
    exact_help = "only block lengths that give, bit for bit, what single steps give"
    verb.add_argument("--exact", action="store_true", help=exact_help)
    verb.add_argument("--kv-bits", type=int, choices=BITS, help="keep the target's keys and values quantised")
    verb.add_argument("--draft-bits", type=int, choices=BITS, help="keep the draft's weights quantised")
    verb.add_argument("--no-memory-check", action="store_true", help="load even what does not seem to fit this machine's memory")


def _load(arguments: argparse.Namespace, cancel: threading.Event) -> Engine:
    """The pair, and on stderr what a user should know of it."""
    memory_bytes = 0 if arguments.no_memory_check else None
    options = LoadOptions(kv_bits=arguments.kv_bits, draft_bits=arguments.draft_bits, memory_bytes=memory_bytes)
    engine = load(arguments.model, progress=load_progress_line(), cancel=cancel, options=options)
    for notice in engine.info.notices:
        print(f"slipstream: {notice}", file=sys.stderr)
    return engine


def _generate(arguments: argparse.Namespace) -> int:
    if arguments.logprobs is not None and not arguments.json:
        raise RequestError("Log probabilities are part of the JSON output only: add --json or leave --logprobs out.")
    refuse_what_has_no_effect(arguments)
    text = _standard_input() if arguments.prompt == "-" else arguments.prompt
    request = GenerationRequest.of(
        text,
        mode=arguments.mode,
        max_tokens=arguments.max_tokens,
        seed=arguments.seed,
        **sampling_settings(arguments),
        exact=arguments.exact,
        use_cache=not arguments.no_cache,
        overflow=arguments.overflow.replace("-", "_"),
        sparse=sparse_settings(arguments),
        constraint=asked_form(arguments),
    )
    from engine.terminal import measuring_line

    finished, show = None, measuring_line()
    with _cancel_on_interrupt() as cancel:
        engine = _load(arguments, cancel)
        for event in engine.generate(request, cancel):
            if isinstance(event, ExactnessProgress) and show is not None:
                show(1.0 if cancel.is_set() else event.fraction)  # at the end the line is wiped
            elif isinstance(event, TextDelta) and not arguments.json:
                print(event.text, end="", flush=True)
            elif isinstance(event, Notice) and not arguments.json:
                print(f"slipstream: {event.reason}", file=sys.stderr)
            elif isinstance(event, Finished):
                finished = event
    assert finished is not None
    _print_answer(finished, arguments.json)
    engine.close()  # what is kept of the prompt is written out
    return 1 if finished.reason == "cancelled" else 0


def _print_answer(finished: Finished, as_json: bool) -> None:
    if as_json:
        from engine.report import answer_record

        print(_json(answer_record(finished), sys.stdout))
    else:
        print(flush=True)
        print(_statistics_line(finished), file=sys.stderr)


def _bench(arguments: argparse.Namespace) -> int:
    from engine.bench.suite import read_suite, short_suite
    from engine.terminal import compare_prompts, summary_lines

    use_short = arguments.prompts is None and arguments.suite == "short"
    prompts = short_suite() if use_short else read_suite(arguments.prompts)
    _check_writable(arguments.json)
    with _cancel_on_interrupt() as cancel:
        engine = _load(arguments, cancel)
        choices = (arguments.mode, arguments.exact)
        result = compare_prompts(engine, prompts, arguments.max_tokens, arguments.repeat, sys.stderr, cancel, *choices)
    print(*summary_lines(result), sep="\n", file=sys.stderr)
    _write_report(arguments.json, result)
    return 0 if len(result["runs"]) == len(prompts) else 1


def _serve(arguments: argparse.Namespace) -> int:
    from engine.server.command import run as run_server

    with _cancel_on_interrupt() as cancel:
        return run_server(arguments, lambda: _load(arguments, cancel), cancel)


def _train_draft(arguments: argparse.Namespace) -> int:
    from engine.training.command import train_draft

    with _cancel_on_interrupt() as cancel:
        return train_draft(arguments, cancel)


def _selftest(arguments: argparse.Namespace) -> int:
    from engine.selftest import run_selftest

    if arguments.json:
        _check_writable(arguments.json)
    before, after = arguments.checks
    report = run_selftest(before, after, arguments.device)
    for check in report["checks"]:
        print(f"{'ok  ' if check['ok'] else 'FAIL'} {check['name']}: {check['detail']} ({check['seconds']:.1f} s)")
    if arguments.json:
        _write_report(arguments.json, report)
    return 0 if report["ok"] else 1


def _doctor(arguments: argparse.Namespace) -> int:
    from engine.bench.doctor import check_line, examine, summary_line

    tell = None if arguments.json else lambda check: print(check_line(check), flush=True)
    # Some libraries print when a part of them is missing, which is no part of the JSON.
    with contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext():
        report = examine(arguments.checks[1], arguments.network, tell)
    print(_json(report, sys.stdout) if arguments.json else summary_line(report))
    return 0 if report["ok"] else 1


def _models(arguments: argparse.Namespace) -> int:
    return arguments.run_models(arguments, _cancel_on_interrupt)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _standard_input() -> str:
    """All of it as UTF-8; what is not becomes U+FFFD instead of an error."""
    if sys.stdin is None:
        raise RequestError("There is no standard input to read the prompt from: give --prompt TEXT.")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _check_writable(path: Path) -> None:
    """Minutes of measuring must not end in a typing error in the path."""
    try:
        existed = path.exists()
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()  # until there is something to write
    except OSError as error:
        raise RequestError(f"{path} cannot be written ({error.strerror}): give another file.") from error


def _write_report(path: Path, report: dict[str, Any]) -> None:
    """Writes ``report``; where that fails after all, it goes to stdout so that nothing measured is lost."""
    try:
        # Lone surrogates in names become the escapes that JSON has for them.
        path.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        print(_json(report, sys.stdout), flush=True)
        raise SlipstreamError(f"{path} cannot be written ({error.strerror}): the report is on standard output instead.") from error


def _json(record: dict[str, Any], out: TextIO) -> str:
    """One line; plain ASCII for a stream that is not UTF-8."""
    return json.dumps(record, ensure_ascii=(out.encoding or "").lower() not in ("utf-8", "utf8"))


@contextlib.contextmanager
def _cancel_on_interrupt() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask the work to stop and keep what there is; a second one ends at once."""
    cancel = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return

    def ask(signum: int, _frame: Any) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancel
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _statistics_line(finished: Finished) -> str:
    numbers = finished.statistics
    parts = [f"{numbers.completion_tokens} tokens", f"{numbers.decode_tok_s:.1f} tokens/s"]
    if numbers.acceptance_rate is not None:
        parts += [f"{numbers.tokens_per_cycle:.2f} tokens/cycle", f"{numbers.acceptance_rate:.0%} accepted"]
    if numbers.completion_tokens:
        parts.append(f"first after {numbers.ttft_s:.2f} s")
    if numbers.cached_tokens:
        parts.append(f"{numbers.cached_tokens:,} of {numbers.prompt_tokens:,} prompt tokens from {numbers.cache}")
    parts.append(numbers.mode)
    return " · ".join(parts) + ("" if finished.reason == "stop" else f" · ended by {finished.reason}")


def _one_line(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "Stopped: run the command again to start over."
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, SlipstreamError):
        return text
    return f"{type(error).__name__}: {text} (run again with --debug and report this)"


if __name__ == "__main__":
    sys.exit(main())
