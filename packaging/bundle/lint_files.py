"""The linter's rules for everything but compiled code: property list, icons, packages, starter pair, licences, strays, sizes."""

from __future__ import annotations

import plistlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import icnsutil

from bundle import plist
from bundle.icons import ENTRIES
from bundle.lock import LOCK, pins
from bundle.project import APP, PACKAGES, SOURCES, Bundle

SIZE_LIMIT = 600_000_000
PYC_MAGIC = b"\xcb\x0d\r\n"  # Python 3.12
UNCHECKED_HASH = 1  # PEP 552: the flags of byte code that is never compared with its source
STRAYS = re.compile(
    r"(^|/)(tests?|\.git|\.github|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.briefcase|build|pip)/"
    r"|(^|/)(\.DS_Store|test_[^/]*\.py|conftest\.py|[^/]*\.(sqlite3|log|orig|rej|pyi|gguf|whl|dmg|incomplete|lock))$"
)
# Python's own library has folders of these names that belong there.
RUNTIME = "Contents/Frameworks/"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with which file, and the rule that says so."""

    rule: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.file} {self.text}"


def files(folder: Path) -> list[Path]:
    """Every regular file below ``folder``; links are not followed."""
    return sorted(path for path in folder.rglob("*") if not path.is_symlink() and path.is_file())


def info_plist(app: Path, bundle: Bundle) -> Iterator[Problem]:
    """Every key that the settings ask for is there with its value; numbers and truth values have their own types."""
    path = app / "Contents" / "Info.plist"
    try:
        found: dict[str, Any] = plistlib.loads(path.read_bytes())
    except (OSError, ValueError, ExpatError) as error:
        yield Problem("plist", "Info.plist", f"cannot be read: {error}")
        return
    wanted = plist.info(bundle)
    # The launcher's template has its own wording for these; what matters in them is checked below.
    templated = {"CFBundleVersion", "CFBundleDocumentTypes", "UTExportedTypeDeclarations"}
    for key, value in wanted.items():
        if key not in found:
            yield Problem("plist", "Info.plist", f"has no {key}")
        elif key not in templated and found[key] != value:
            yield Problem("plist", "Info.plist", f"{key} is {found[key]!r}, not {value!r}")
    types = [name for entry in found.get("CFBundleDocumentTypes", []) for name in entry.get("LSItemContentTypes", [])]
    declared = [entry.get("UTTypeIdentifier") for entry in found.get("UTExportedTypeDeclarations", [])]
    for id in bundle.document_types:
        if f"{bundle.identifier}.{id}" not in types or f"{bundle.identifier}.{id}" not in declared:
            yield Problem("plist", "Info.plist", f"does not declare the document type {id}")


def icons(app: Path, bundle: Bundle) -> Iterator[Problem]:
    """The app's and the documents' icons hold every size."""
    for name in (f"{APP}.icns", *(f"{APP}-{id}.icns" for id in bundle.document_types)):
        path = app / "Contents" / "Resources" / name
        try:
            held = set(icnsutil.IcnsFile(str(path)).media)
        except (OSError, ValueError, struct.error, icnsutil.RawData.ParserError) as error:
            yield Problem("icon", name, f"cannot be read: {error}")
            continue
        if missing := [code for code in ENTRIES if code not in held]:
            yield Problem("icon", name, f"lacks {', '.join(missing)}")


def packages(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """Exactly the locked packages, in the locked versions."""
    locked = pins(LOCK.read_text(encoding="utf-8"))
    installed = distributions(path=[str(app / PACKAGES)])
    found = {re.sub(r"[-_.]+", "-", item.metadata["Name"]).lower(): item.version for item in installed}
    for name in sorted(locked.keys() | found.keys()):
        if locked.get(name) != found.get(name):
            yield Problem("packages", name, f"is {found.get(name, 'missing')}, the lock has {locked.get(name, 'none')}")


def starter(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """The starter pair is inside and whole, so the first launch needs no network."""
    from engine.models import manifest
    from engine.models.starter import PACKAGE

    folder = app / SOURCES / "resources" / "starter"
    if (reason := manifest.problem(folder / "target", PACKAGE.member_sha256, True)) is not None:
        yield Problem("starter", "target", f"is not usable: {reason}")
    for name in ("config.json", "model.safetensors"):
        if not (folder / "draft" / name).is_file():
            yield Problem("starter", f"draft/{name}", "is missing")


def licences(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """The file that About shows names every package inside."""
    path = app / SOURCES / "resources" / "licences" / "third-party.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for item in distributions(path=[str(app / PACKAGES)]):
        if f"{item.metadata['Name']} {item.version}\n" not in text:
            yield Problem("licences", item.metadata["Name"], f"is not in {path.name}")


def byte_code(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """Byte code is of the bundle's Python and never checked against its source, so it is never written again."""
    for path in files(app):
        if path.suffix == ".pyc":
            header = path.read_bytes()[:8]
            if len(header) < 8 or header[:4] != PYC_MAGIC:
                yield Problem("byte-code", str(path.relative_to(app)), "is of another Python than the bundle's")
            elif struct.unpack("<I", header[4:])[0] != UNCHECKED_HASH:
                yield Problem("byte-code", str(path.relative_to(app)), "would be checked and written again: use unchecked-hash")


def strays(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """No tests, caches, databases, logs or build leftovers; no two names that a Mac's file system takes for one."""
    seen: dict[str, str] = {}
    for path in files(app):
        name = path.relative_to(app).as_posix()
        if STRAYS.search(name) and not name.startswith(RUNTIME):
            yield Problem("stray", name, "does not belong into the bundle")
        if (other := seen.setdefault(name.casefold(), name)) != name:
            yield Problem("stray", name, f"differs from {other} by upper and lower case only")


def links(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """Links lead to something inside the bundle."""
    for path in app.rglob("*"):
        if path.is_symlink():
            target = path.resolve()
            if not target.exists() or not target.is_relative_to(app.resolve()):
                yield Problem("link", str(path.relative_to(app)), "leads nowhere or out of the bundle")


def sizes(app: Path, _bundle: Bundle) -> Iterator[Problem]:
    """The whole stays below the limit."""
    if (total := sum(path.stat().st_size for path in files(app))) > SIZE_LIMIT:
        yield Problem("size", app.name, f"has {total / 1e6:.0f} MB, more than {SIZE_LIMIT / 1e6:.0f}")


def runtime(app: Path, bundle: Bundle) -> Iterator[Problem]:
    """The launcher can be started and Python's runtime is there."""
    launcher = app / "Contents" / "MacOS" / bundle.name
    if not launcher.is_file() or not launcher.stat().st_mode & 0o111:
        yield Problem("runtime", f"MacOS/{bundle.name}", "is missing or cannot be executed")
    if not (app / "Contents" / "Frameworks" / "Python.framework").is_dir():
        yield Problem("runtime", "Frameworks/Python.framework", "is missing")
