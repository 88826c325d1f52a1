"""Adds to a created bundle what Briefcase does not: the starter pair, licences and byte code. ``python -m bundle.finish APP``.

On a Mac it runs between ``briefcase create`` and ``briefcase build``, which signs.
"""

from __future__ import annotations

import compileall
import shutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

from bundle import licences
from bundle.project import PACKAGES, PYTHON, SOURCES


def finish(app: Path, target: Path) -> None:
    """Completes ``app`` with the starter target of folder ``target``. Raises ``OSError``, or ``ValueError`` for what is missing."""
    resources = app / SOURCES / "resources"
    add_starter(target, resources)
    licences.write(app / PACKAGES, resources / "licences" / licences.FILE)
    if not compile_code(app):
        print(f"finish: no byte code, because this is not Python {PYTHON}")


def add_starter(target: Path, resources: Path) -> None:
    """Puts the set-up starter target where the program looks for a shipped one."""
    place = resources / "starter" / "target"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(target, place)


def compile_code(app: Path) -> bool:
    """Byte code that Python never checks against its source and so never writes again, which would break the signature.

    False where this Python is of another version than the bundle's.
    """
    for stale in list(app.rglob("__pycache__")):  # some wheels bring byte code of another Python
        shutil.rmtree(stale)
    if f"{sys.version_info.major}.{sys.version_info.minor}" != PYTHON:
        return False
    for folder in (app / SOURCES, app / PACKAGES):
        # Some packages carry files for older or newer Pythons that do not compile; they are never imported.
        compileall.compile_dir(
            folder, quiet=2, workers=1, force=True, stripdir=str(app), invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
        )
    return True


def starter_target() -> Path:
    """The starter target on this machine, set up now if it is not there yet."""
    from engine.models import ensure_starter

    return ensure_starter(full=True).target


def main(arguments: list[str]) -> int:
    """Completes the bundle that is named."""
    try:
        finish(Path(arguments[0]), starter_target())
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
