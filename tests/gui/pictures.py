"""Saves a picture of every screen in both looks, two sizes and both languages, to be looked at.

    QT_QPA_PLATFORM=offscreen python -m tests.gui.pictures FOLDER [SCENE ...]
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.language import speak
from app.main import make_application
from app.services.wiring import Services
from app.ui.main_window import MainWindow
from tests.gui.scenes import SCENES, idle, pump
from tests.scripted import Script, ScriptedLoader

SIZES = ((1180, 780), (760, 520))


def take(application: QApplication, folder: Path, name: str, language: str, look: str, size: tuple[int, int]) -> None:
    """One picture."""
    speak(language, application)
    with tempfile.TemporaryDirectory(prefix="slipstream-") as data:
        services = Services(Path(data), ScriptedLoader(Script(tokens=60, rate=600.0)))
        services.settings.update(appearance=look, language=language)
        window = MainWindow(services)
        window.resize(*size)
        window.show()
        services.client.load("scripted")
        idle(window)
        window.fill_models()
        shown = SCENES[name](window)
        pump(0.3)
        shown.grab().save(str(folder / f"{name}-{language}-{look}-{size[0]}.png"))
        if shown is not window:
            shown.close()
        services.settings.update(appearance="system")
        window.retire()
        services.shutdown(5.0)
        window.deleteLater()
        pump(0.05)


def main() -> int:
    """Takes what the arguments name."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(SCENES)
    folder.mkdir(parents=True, exist_ok=True)
    application = make_application(["slipstream"])
    for name, language, look, size in itertools.product(names, ("en", "de"), ("light", "dark"), SIZES):
        take(application, folder, name, language, look, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
