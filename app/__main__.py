"""The entry of the program: picks the window or a command before Qt is imported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from app import launch
from app.display import has_display
from engine import __version__

VERBS = ("generate", "bench", "serve", "train-draft", "models", "doctor", "selftest")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The window's own options; ends with code 2 where they are wrong."""
    from engine.cli import Parser

    parser = Parser(
        prog="slipstream",
        description="Chat with a local model, sped up by DFlash. Without arguments the window opens.",
        epilog=f"Commands, each with its own --help: {', '.join(VERBS)}.",
    )
    parser.add_argument("--pair", help="the pair to load: a catalog id, or TARGET[+DRAFT]")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where chats, settings and logs are kept")
    parser.add_argument("--screenshot", type=Path, metavar="PATH", help="save pictures of a real run and leave")
    parser.add_argument("--version", action="version", version=f"slipstream {__version__}")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command, the window, or, where there is no display, the terminal demo. Returns the exit code."""
    arguments = launch.own_arguments(sys.argv[1:] if argv is None else argv)
    if launch.is_interpreter_call(arguments):
        print(launch.NO_INTERPRETER, file=sys.stderr)
        return 2
    if arguments and arguments[0] in (*VERBS, "--debug"):
        from engine.cli import main as run_command

        verb = next((argument for argument in arguments if argument != "--debug"), "")
        if verb == "doctor":  # nothing more is imported before it, so that it can say what is missing
            from app.doctor import examinations

            return run_command(arguments, ((), examinations()))
        launch.prepare()
        if verb == "selftest":
            from app.selftest import after, before

            return run_command(arguments, (before(), after()))
        return run_command(arguments)
    if arguments and not arguments[0].startswith("-"):
        print(f"slipstream: there is no command {arguments[0]!r}: use {', '.join(VERBS)}, or none for the window.", file=sys.stderr)
        return 2
    options = parse(arguments)
    if options.screenshot is not None:
        return take_screenshots(options.screenshot, options.pair)
    if not has_display():
        return run_demo(options.pair or "starter") or take_screenshots(Path.cwd(), options.pair)
    from app.main import Options, run

    return run(Options(options.pair, options.data))


def run_demo(pair: str) -> int:
    """Compares both modes in the terminal."""
    from engine import SlipstreamError
    from engine.cli import demo

    try:
        return demo(pair)
    except SlipstreamError as error:
        print(error, file=sys.stderr)
        return 1


def take_screenshots(path: Path, pair: str | None) -> int:
    """Saves the pictures and names them on stdout."""
    from app.screenshot import ScreenshotError, take

    try:
        for picture in take(path, pair or "starter"):
            print(f"Saved {picture}")
    except ScreenshotError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
