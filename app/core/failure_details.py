"""What to send us of a fault that is ours: versions, the model, and where in the code it happened, without a word of any chat."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.core.words import tr
from engine import PairInfo, __version__

_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+)(, in (?P<name>.+))?')
_NATIVE = re.compile(r"(Fatal Python error: .+|(Current thread|Thread) 0x\w+.*|\d{4}-\d\d-\d\d .* uncaught error)")
# The end of a traceback: the kind of error. What follows it may quote a chat and is left out.
_KIND = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(: .*)?")
_PLAIN_KIND = re.compile(r"[\w.]*(Error|Exception|Interrupt|Exit|Warning|StopIteration)")


def failure_details(title: str, traceback: str, environment: Mapping[str, str], pair: PairInfo | None) -> str:
    """The text to copy, ending in one newline. ``title`` is the line that was shown, which never quotes a chat."""
    lines = [f"Slipstream {__version__}: {title}", ""]
    lines += [f"{name}: {value}" for name, value in environment.items()]
    if pair is not None:
        model = tr("model")
        lines.append(f"{model}: {pair.name}, {pair.family}, {pair.device}, {pair.dtype}")
    return "\n".join([*lines, "", *places(traceback)]) + "\n"


def places(traceback: str) -> list[str]:
    """Files, lines, functions and kinds of error of a Python traceback or a fault's dump."""
    kept = []
    for line in traceback.splitlines():
        frame = _FRAME.fullmatch(line)
        kind = _KIND.fullmatch(line)
        if frame is not None:
            kept.append(f"  {_short(frame['file'])}:{frame['line']} {frame['name'] or ''}".rstrip())
        elif _NATIVE.fullmatch(line) is not None:
            kept.append(line)
        elif kind is not None and _PLAIN_KIND.fullmatch(kind["kind"]):
            kept.append(kind["kind"])
    return kept


def _short(file: str) -> str:
    """A path without what lies above the package: that names the user."""
    parts = file.replace("\\", "/").split("/")
    for root in ("site-packages", "app_packages"):
        if root in parts:
            return "/".join(parts[parts.index(root) + 1 :])
    for index, part in enumerate(parts):
        if part in ("app", "engine", "slipstream"):
            return "/".join(parts[index:])
    return parts[-1]
