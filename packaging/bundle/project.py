"""What pyproject.toml says about the bundle, merged the way Briefcase merges it for macOS."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
APP = "slipstream"
PYTHON = "3.12"  # the version whose runtime the bundle embeds
PACKAGES = "Contents/Resources/app_packages"
SOURCES = "Contents/Resources/app"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The settings of the macOS app. ``min_os`` is (major, minor); ``cleanup_paths`` are globs beside the .app folder."""

    name: str
    identifier: str
    version: str
    min_os: tuple[int, int]
    requires: tuple[str, ...]
    installer_args: tuple[str, ...]
    sources: tuple[str, ...]
    cleanup_paths: tuple[str, ...]
    icon: str
    background: str
    document_types: dict[str, dict[str, Any]]
    info: dict[str, Any]
    entitlements: dict[str, bool]

    @property
    def folder(self) -> str:
        """The name of the bundle's folder."""
        return f"{self.name}.app"


def read(root: Path = ROOT) -> Bundle:
    """Reads ``root``/pyproject.toml. Raises ``KeyError`` where a setting is missing."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    whole = document["tool"]["briefcase"]
    app = whole["app"][APP]
    mac = app["macOS"]
    name = app["formal_name"]
    return Bundle(
        name=name,
        identifier=f"{whole['bundle']}.{APP}",
        version=whole["version"],
        min_os=version(mac["min_os_version"]),
        requires=(*document["project"]["dependencies"], *mac["requires"]),
        installer_args=tuple(mac["requirement_installer_args"]),
        sources=tuple(app["sources"]),
        cleanup_paths=tuple(path.replace("{app.formal_name}", name) for path in mac["cleanup_paths"]),
        icon=app["icon"],
        background=app["installer_background"],
        document_types=app["document_type"],
        info=mac["info"],
        entitlements=mac["entitlement"],
    )


def version(text: str) -> tuple[int, int]:
    """ "14.0" as (14, 0)."""
    major, minor = [*text.split("."), "0"][:2]
    return int(major), int(minor)
