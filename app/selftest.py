"""What the self-test checks of the program around the engine: a real window, files outside the bundle, no second process."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from app.core.chat import KINDS
from app.display import has_display
from engine.models.paths import cache_folder, data_folder, resources_folder

Check = tuple[str, Callable[[], str]]
WINDOW_S = 10.0
FEW_COLOURS = 8
_kept: list[Any] = []  # Qt's application must outlive the window check


class CheckFailed(Exception):
    """One line: what does not hold."""


def bundle() -> Path | None:
    """The .app folder this program runs from, None outside of one."""
    return next((folder for folder in resources_folder().resolve().parents if folder.suffix == ".app"), None)


def before() -> list[Check]:
    """The checks that come before the engine's."""
    return [
        ("window is shown", _window),
        ("chats can be kept outside the bundle", _chats),
        ("documents can be read", _documents),
        ("cache folder is writable outside the bundle", _cache),
    ]


def after() -> list[Check]:
    """The checks that come after the engine's. What they compare with is remembered now."""
    watched = bundle() or resources_folder()
    earlier = _snapshot(watched)

    def nothing_written() -> str:
        if changed := sorted(set(_snapshot(watched).items()) ^ set(earlier.items())):
            raise CheckFailed(f"changed in {watched}: {changed[0][0]}")
        return f"{len(earlier)} files in {watched}"

    return [("no second process", _no_second_process), ("nothing is written into the bundle", nothing_written)]


def _documents() -> str:
    """Each library is there with all that it loads itself."""
    for name in ("pypdf", "cryptography.hazmat.primitives.ciphers", "mammoth", "markdownify", "striprtf.striprtf"):
        import_module(name)
    return ", ".join(KINDS.values())


def _snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for parent, _folders, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(parent, name))
            found[os.path.relpath(os.path.join(parent, name), folder)] = (status.st_size, status.st_mtime_ns)
    return found


def _window() -> str:
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtWidgets import QApplication

    from app.main import make_application
    from app.services.wiring import Services
    from app.ui.main_window import MainWindow

    application = QApplication.instance() or make_application(["slipstream"])
    _kept.append(application)
    with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
        services = Services(Path(folder))
        window = MainWindow(services)
        try:
            window.show()
            end = time.monotonic() + WINDOW_S
            while not window.windowHandle().isExposed():
                if time.monotonic() > end:
                    raise CheckFailed(f"the window was not shown within {WINDOW_S:.0f} s")
                application.processEvents()
                time.sleep(0.01)
            picture = window.grab().toImage()
            colours = {picture.pixel(x, y) for x in range(0, picture.width(), 3) for y in range(0, picture.height(), 3)}
            if len(colours) < FEW_COLOURS:
                raise CheckFailed(f"the window is empty: {len(colours)} colours")
        finally:
            window.retire()
            services.shutdown()
            window.deleteLater()
            application.processEvents()
    return f"{picture.width()} by {picture.height()} pixels on {QApplication.platformName()}"


def _chats() -> str:
    from app.store import ChatStore

    folder = _outside(data_folder())
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".selftest-", dir=folder) as place:
        for _start in range(2):  # what was kept must be there at the next start
            store = ChatStore(Path(place) / "chats.sqlite3")
            store.create_chat("Self-test")
            count = len(store.chats())
            store.close()
    if count != 2:
        raise CheckFailed(f"{count} of 2 chats were kept in {folder}")
    return str(folder)


def _cache() -> str:
    folder = _outside(cache_folder())
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ok")
    return str(folder)


def _outside(folder: Path) -> Path:
    inside = bundle()
    if inside is not None and folder.resolve().is_relative_to(inside):
        raise CheckFailed(f"{folder} lies inside the bundle")
    return folder


def _no_second_process() -> str:
    import psutil  # not above: the doctor imports this page whatever is missing

    process = psutil.Process()
    others = [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]  # those have ended
    if others:
        raise CheckFailed(f"started {', '.join(' '.join(other.cmdline()[:3]) for other in others)}")
    return f"one process, {process.num_threads()} threads"
