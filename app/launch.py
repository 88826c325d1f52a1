"""What must hold before anything else is imported: this program is no Python interpreter, and starts no second process."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

INTERPRETER_FLAGS = frozenset({"-c", "-m", "-B", "-E", "-I", "-S", "-s", "-u", "--multiprocessing-fork"})
NO_INTERPRETER = "slipstream: this program was started as if it were Python; nothing was run."
# What macOS itself puts on a command line: an old process number, and defaults given as NAME VALUE.
_SYSTEM_PREFIXES = ("-psn_", "-NS", "-Apple")


def is_interpreter_call(arguments: Sequence[str]) -> bool:
    """Whether some library took ``sys.executable`` for Python: inside the bundle that is the app, and a window would open."""
    return bool(arguments) and arguments[0] in INTERPRETER_FLAGS


def own_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that macOS added."""
    kept: list[str] = []
    value_follows = False
    for argument in arguments:
        if argument.startswith(_SYSTEM_PREFIXES):
            value_follows = not argument.startswith("-psn_")
        elif value_follows and not argument.startswith("-"):
            value_follows = False
        else:
            kept.append(argument)
            value_follows = False
    return kept


def prepare() -> None:
    """Keeps libraries from starting processes: tqdm's default lock is one of multiprocessing's, which runs ``sys.executable``."""
    from tqdm.std import tqdm

    tqdm.set_lock(threading.RLock())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
