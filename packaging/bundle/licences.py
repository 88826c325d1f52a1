"""Writes the licences of the packages in a bundle into the file that About shows."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from app.core.licences import SHIPPED, collect
from bundle.project import ROOT

FILE = SHIPPED


def write(packages: Path, file: Path) -> None:
    """Collects from ``packages`` (a folder of installed packages). Raises ``ValueError`` where a licence is missing."""
    text, missing = collect(distributions(path=[str(packages)]), ROOT / "resources" / "licences")
    if missing:
        raise ValueError(f"No licence text for {', '.join(missing)}: add it to app/core/licences.py")
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
