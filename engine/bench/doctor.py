"""Is this machine and installation fit? Examinations that load no model, each with a verdict and what to do next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import engine

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, in one line. ``action`` says what to do next; it is empty where ``state`` is "ok"."""

    state: State
    detail: str
    action: str = ""


RIGHTS = "check the owner and rights of it and of the folders around it."
Examination = tuple[str, Callable[[], Verdict]]  # its name, and what looks


def ok(detail: str) -> Verdict:
    return Verdict("ok", detail)


def warning(detail: str, action: str) -> Verdict:
    return Verdict("warning", detail, action)


def failed(detail: str, action: str) -> Verdict:
    return Verdict("failed", detail, action)


def shown(path: Path) -> str:
    """A path for reports that are passed on: without the user's name where it lies in the home folder."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def typed(path: str) -> str:
    """What ``shown`` gave as a shell takes it: blanks are quoted, the ~ for the home folder is not."""
    home, rest = path[:2], path[2:]
    return home + shlex.quote(rest) if home == f"~{os.sep}" else shlex.quote(path)


def one_line(error: BaseException) -> str:
    """The first line of an error, with its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".: ")


def examine(
    more: Sequence[Examination] = (), network: bool = False, tell: Callable[[dict[str, str]], None] | None = None
) -> dict[str, Any]:
    """{"ok", "slipstream", "checks": [{"name", "state", "detail", "action"}]}; ``ok`` where nothing failed.

    ``more`` are the program's own examinations, after the engine's. ``network`` also asks the hub. ``tell`` gets each check as
    soon as it is done. One that breaks is reported as failed and does not stop those after it.
    """
    checks: list[dict[str, str]] = []
    for name, look in (*_own(network), *more):
        try:
            verdict = look()
        except PermissionError as error:
            verdict = failed(f"{shown(Path(error.filename or ''))} cannot be read ({error.strerror})", RIGHTS)
        except Exception as error:  # the report must be complete whatever is broken
            verdict = failed(f"could not be examined ({type(error).__name__}: {one_line(error)})", "install Slipstream again.")
        checks.append({"name": name, **asdict(verdict)})
        if tell is not None:
            tell(checks[-1])
    healthy = all(check["state"] != "failed" for check in checks)
    return {"ok": healthy, "slipstream": engine.__version__, "checks": checks}


def check_line(check: dict[str, str]) -> str:
    """One check for a terminal; what to do next stands below it."""
    action = f"\n{'':<8} {'to do:':<14} {check['action']}" if check["action"] else ""
    return f"{check['state']:<8} {check['name']:<14} {check['detail']}{action}"


def summary_line(report: dict[str, Any]) -> str:
    """The last line."""
    states = [check["state"] for check in report["checks"]]
    warnings, failures = states.count("warning"), states.count("failed")
    return f"{len(states)} checks: {failures} failed, {warnings} with a warning."


def _own(network: bool) -> list[Examination]:
    from engine.bench import doctor_files as files
    from engine.bench import doctor_machine as machine
    from engine.bench import doctor_surroundings as surroundings

    return [
        ("system", machine.system),
        ("packages", machine.packages),
        ("MLX", machine.mlx),
        ("engine", machine.engine_imports),
        ("BLAS", machine.blas),
        ("memory", machine.memory),
        *((name, partial(files.folder, name)) for name in files.FOLDERS),
        ("measurements", files.measurements),
        ("prefix cache", files.prefix_cache),
        ("catalog", files.catalog),
        ("starter", files.starter),
        ("models", files.models),
        ("environment", surroundings.environment),
        ("certificates", surroundings.certificate_files),
        ("hub", partial(surroundings.hub, network)),
    ]
