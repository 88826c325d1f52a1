"""The licences of everything that comes with the program: collected from the installed packages, or as the bundle ships them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from engine.models.paths import resources_folder

SHIPPED = "third-party.txt"
# The texts of packages whose wheels name their licence without bringing it.
TEXTS = {
    "LGPL-3.0": ("LGPL-3.0.txt", "GPL-3.0.txt"),
    "Apache": ("Apache-2.0.txt",),
    "MIT": ("MIT.txt",),
}
CLAUSES = {"cobble": "BSD-2-Clause.txt"}  # by package: its data say BSD, and only its description which one
NO_TEXT = "This package brings no licence text: its home page has it."
INTRODUCTION = """Slipstream is licensed under the Apache License 2.0. It contains this software, each under its own licence.
Qt for Python (PySide6, shiboken6) and Qt are used as separate libraries under the LGPL 3: you may replace them in
Contents/Resources/app_packages/PySide6 with your own build. What Qt itself contains: https://doc.qt.io/qt-6/licenses-used-in-qt.html
The starter model SmolLM2-135M-Instruct is by Hugging Face, Apache License 2.0; its draft is part of Slipstream.
"""


def licences() -> str:
    """What About shows: the bundle's own file, or the packages of this environment where there is none."""
    folder = resources_folder() / "licences"
    shipped = folder / SHIPPED
    return shipped.read_text(encoding="utf-8") if shipped.is_file() else collect(distributions(), folder)[0]


def collect(packages: Iterable[Distribution], texts: Path) -> tuple[str, list[str]]:
    """One section a package, by name, then Python's own; and the names of the packages whose licence was not found."""
    found = sorted({package.metadata["Name"].lower(): package for package in packages}.items())
    bodies = {f"{package.metadata['Name']} {package.version}": _body(package, texts) for _name, package in found}
    sections = [f"{_title(name)}\n\n{body or NO_TEXT}" for name, body in bodies.items()]
    python = (texts / "Python-3.12.txt").read_text(encoding="utf-8")
    text = "\n\n".join([INTRODUCTION, *sections, f"{_title('Python')}\n\n{python.strip()}"]) + "\n"
    return text, [name for name, body in bodies.items() if not body]


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"


def _body(package: Distribution, texts: Path) -> str:
    own = [str(file.locate()) for file in package.files or () if _is_licence(file.name, file.parts)]
    paths = sorted(Path(path) for path in own if Path(path).is_file()) or _fallback(package, texts)
    return "\n\n".join(path.read_text(encoding="utf-8", errors="replace").strip() for path in paths)


def _is_licence(name: str, parts: tuple[str, ...]) -> bool:
    in_information = parts[0].endswith(".dist-info")
    return in_information and name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"))


def _fallback(package: Distribution, texts: Path) -> list[Path]:
    metadata = package.metadata
    fields = [metadata[name] for name in ("License-Expression", "License") if name in metadata]
    fields += [text for text in metadata.get_all("Classifier", []) if text.startswith("License")]
    said = "\n".join(fields)
    if (name := metadata["Name"].lower()) in CLAUSES and "BSD" in said:
        return [texts / CLAUSES[name]]
    return [texts / file for key, files in TEXTS.items() if key in said for file in files]
