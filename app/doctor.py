"""What the doctor examines of the program around the engine: Qt, the display, where it runs from, the last crash. No Qt here."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import time
from pathlib import Path

from app.display import has_display
from app.selftest import bundle
from engine.bench.doctor import Examination, Verdict, failed, ok, one_line, shown, warning
from engine.models.paths import data_folder

MODULES = ("QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg")
LIBRARIES = "install the libraries that Qt needs (on Debian: `sh packaging/system_libraries.sh` names them)."
MOVED = "/AppTranslocation/"


def examinations() -> list[Examination]:
    """The program's own, in the order in which they are told."""
    return [("program", _program), ("Qt", _qt), ("display", _display), ("crash log", _crash_log)]


def _program() -> Verdict:
    inside = bundle()
    if inside is None:
        return ok("runs from its source")
    if MOVED in str(inside):
        return warning("macOS runs a hidden copy of the app", "drag Slipstream.app to the Applications folder and start it there.")
    return ok(f"runs from {shown(inside)}")


def _qt() -> Verdict:
    try:
        modules = [importlib.import_module(f"PySide6.{name}") for name in MODULES]
    except ImportError as error:
        action = LIBRARIES if sys.platform.startswith("linux") else "install Slipstream again."
        return failed(f"Qt cannot be loaded, so there is no window ({one_line(error)})", action)
    return ok(f"Qt {modules[0].qVersion()} can be loaded")


def _display() -> Verdict:
    if not has_display():
        return warning(
            "there is none, so only the commands work and no window",
            "start Slipstream in a desktop session, or set DISPLAY or WAYLAND_DISPLAY.",
        )
    if not sys.platform.startswith("linux"):
        return ok("there is one")
    trouble = _platform_trouble()
    return failed(f"Qt cannot open a window ({trouble})", LIBRARIES) if trouble else ok("there is one, and Qt's plugin loads")


def _platform_trouble() -> str | None:
    """Why the plugin that Qt would take cannot be loaded. Qt itself would end the process where it cannot."""
    name = os.environ.get("QT_QPA_PLATFORM", "").split(";")[0].split(":")[0]
    name = name or ("wayland" if os.environ.get("WAYLAND_DISPLAY") else "xcb")
    try:
        from PySide6.QtCore import QLibraryInfo

        folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)) / "platforms"
        files = [file for file in folder.glob("libq*.so") if file.stem.startswith(f"libq{name}")]
        if not files:
            return f"it has no plugin for {name}"
        ctypes.CDLL(str(files[0]))
    except (ImportError, OSError) as error:
        return one_line(error)
    return None


def _crash_log() -> Verdict:
    from app.services.crashlog import CRASH, PREVIOUS

    folder = data_folder()
    crash, previous = folder / CRASH, folder / PREVIOUS
    if crash.exists() and crash.stat().st_size:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(crash.stat().st_mtime))
        return warning(f"the last run ended in a fault on {when}", f"look through {shown(crash)} and send it with a report.")
    if previous.exists():
        return ok(f"the last run ended well; an earlier fault is in {shown(previous)}")
    return ok("no run has ended in a fault")
