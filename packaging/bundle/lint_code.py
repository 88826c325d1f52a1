"""The linter's rules for compiled code: architecture, minimum macOS, what is loaded from where, Metal's library."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from bundle.lint_files import Problem, files
from bundle.macho import Slice, is_macho, slices
from bundle.project import PACKAGES, Bundle

SYSTEM = ("/usr/lib/", "/System/Library/")
# Symbols of libc++.dylib and the first macOS whose library has them (LLVM's own availability table).
LIBCXX = (
    ((15, 0), re.compile(r"__is_posix_terminal|__init_primary_exception")),
    ((15, 4), re.compile(r"bad_function_call|bad_expected_access|tzdb")),
    ((26, 0), re.compile(r"__from_chars_floating_point|__hash_memory")),
)
METALLIB = "mlx/lib/mlx.metallib"
_METALLIB_HEADER = struct.Struct("<4s8xHH")  # magic, then the minimum macOS at bytes 12 to 15


def machos(app: Path, bundle: Bundle) -> Iterator[Problem]:
    """Every Mach-O file: arm64 alone, signed, no newer macOS than the floor, everything it loads inside or of the system."""
    for path in files(app):
        if not is_macho(path):
            continue
        name = str(path.relative_to(app))
        try:
            found = slices(path)
        except ValueError as error:
            yield Problem("macho", name, str(error))
            continue
        arm = next((part for part in found if part.architecture == "arm64"), None)
        if arm is None:
            yield Problem("architecture", name, f"has only {', '.join(part.architecture for part in found)}")
            continue
        if len(found) > 1 and "Python.framework" not in path.parts:
            yield Problem("architecture", name, f"has {len(found)} architectures: thin it")
        for rule, text in (*_floor(arm, bundle), *_loads(arm, path, app)):
            yield Problem(rule, name, text)


def _floor(part: Slice, bundle: Bundle) -> Iterator[tuple[str, str]]:
    if part.min_os is None:
        yield "minimum-os", "does not say which macOS it needs"
    elif part.min_os > bundle.min_os:
        yield "minimum-os", f"needs macOS {part.min_os[0]}.{part.min_os[1]}"
    if not part.signed:
        yield "signature", "has no code signature"
    for symbol in part.imports:
        for needs, pattern in LIBCXX:
            if needs > bundle.min_os and pattern.search(symbol):
                yield "libc++", f"imports {symbol}, which macOS has from {needs[0]}.{needs[1]} on"


def _loads(part: Slice, path: Path, app: Path) -> Iterator[tuple[str, str]]:
    for load, weak in part.loads:
        if load.startswith(SYSTEM) or weak:
            continue
        if load.startswith("@"):
            if not any(place.exists() for place in _places(load, part.rpaths, path, app)):
                yield "load", f"{load} is not in the bundle"
        else:
            yield "load", f"{load} is a path outside of the bundle"


def _places(load: str, rpaths: tuple[str, ...], path: Path, app: Path) -> list[Path]:
    """Where the loader looks: the file's own rpaths, and the launcher's for what Python's runtime brings."""
    names = [load.replace("@rpath", rpath) for rpath in rpaths] if load.startswith("@rpath") else [load]
    launcher = app / "Contents" / "MacOS"
    if load.startswith("@rpath"):
        names.append(load.replace("@rpath", str(app / "Contents" / "Frameworks")))
    return [Path(name.replace("@loader_path", str(path.parent)).replace("@executable_path", str(launcher))) for name in names]


def metallib(app: Path, bundle: Bundle) -> Iterator[Problem]:
    """MLX finds its kernels beside its library only, and they must have been compiled for the floor."""
    path = app / PACKAGES / METALLIB
    if not path.is_file():
        yield Problem("metallib", METALLIB, "is missing: is mlx-metal in the lock?")
        return
    if not (path.parent / "libmlx.dylib").is_file():
        yield Problem("metallib", METALLIB, "does not lie beside libmlx.dylib")
    with path.open("rb") as file:
        header = file.read(_METALLIB_HEADER.size)
    magic, *needs = _METALLIB_HEADER.unpack(header) if len(header) == _METALLIB_HEADER.size else (b"", 0, 0)
    if magic != b"MTLB":
        yield Problem("metallib", METALLIB, "is no Metal library")
    elif tuple(needs) > bundle.min_os:
        yield Problem("metallib", METALLIB, f"needs macOS {needs[0]}.{needs[1]}")
    copies = [other for other in app.rglob("*.metallib") if other != path]
    if copies:
        yield Problem("metallib", str(copies[0].relative_to(app)), "is a second Metal library")


def count(app: Path) -> int:
    """The number of Mach-O files."""
    return sum(is_macho(path) for path in files(app))
