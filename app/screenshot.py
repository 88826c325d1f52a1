"""Pictures of a real run: the window without a screen asks the real pair, compares both modes, and is saved."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication

from app.main import make_application
from app.services.wiring import Services
from app.ui.main_window import MainWindow
from app.worker import Failure, Loader, load_engine

PROMPT = "Write a Python function that checks whether a string is a palindrome."
TOKENS = 160
LIMIT_S = 240.0


class ScreenshotError(Exception):
    """No picture could be made. ``str(error)`` is one line: why."""


def take(path: Path, pair: str = "starter", loader: Loader = load_engine, tokens: int = TOKENS) -> list[Path]:
    """Saves ``slipstream.png`` and ``slipstream-compare.png`` in folder ``path``, or ``X.png`` and ``X-compare.png``.

    Uses chats of its own, so nothing of the user's is shown or changed. Raises ``ScreenshotError``.
    """
    chat, compare = path / "slipstream.png", path / "slipstream-compare.png"
    if path.suffix.lower() == ".png":
        chat, compare = path, path.with_name(f"{path.stem}-compare.png")
    chat.parent.mkdir(parents=True, exist_ok=True)
    application = QApplication.instance()
    if application is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        application = make_application(["slipstream"])
    with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
        photographer = _Photographer(application, Path(folder), loader)
        try:
            photographer.load(pair)
            photographer.ask(tokens, chat)
            photographer.compare(compare)
        finally:
            photographer.close()
    return [chat, compare]


class _Photographer:
    """One window and what it is waited for."""

    def __init__(self, application: QCoreApplication, folder: Path, loader: Loader):
        self.application = application
        self.failure: Failure | None = None
        self.services = Services(folder, loader)
        self.window = MainWindow(self.services)
        self.window.resize(1180, 780)
        self.services.conversation.failed.connect(self._on_failure)
        self.services.client.load_failed.connect(self._on_failure)
        self.window.show()

    def load(self, pair: str) -> None:
        self.services.client.load(pair)
        self.wait(lambda: self.services.client.info is not None)
        self.window.fill_models()

    def ask(self, tokens: int, picture: Path) -> None:
        self.services.settings.update(max_tokens=tokens)
        self.send("dflash")
        self.save(picture)

    def compare(self, picture: Path) -> None:
        self.window.do.new_chat()
        self.send("compare")
        self.save(picture)

    def send(self, mode: str) -> None:
        talk = self.services.conversation
        self.window.do.set_mode(mode)  # type: ignore[arg-type]
        self.window.composer.set_text(PROMPT)
        self.window.do.send()
        self.wait(lambda: not self.services.client.busy and talk.active is None and talk.comparison.running is None)

    def save(self, picture: Path) -> None:
        self.pump(0.5)  # the colours of the code and the last layout come in the next few frames
        if not self.window.grab().save(str(picture)):
            raise ScreenshotError(f"{picture} cannot be written: choose another folder with --screenshot.")

    def wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not done():
            if self.failure is not None:
                raise ScreenshotError(self.failure.message)
            if time.monotonic() > end:
                raise ScreenshotError(f"The pair did not answer within {LIMIT_S:.0f} s.")
            self.pump(0.02)

    def pump(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.application.processEvents()
            time.sleep(0.005)

    def close(self) -> None:
        self.services.shutdown(10.0)
        self.window.hide()
        self.window.deleteLater()
        self.pump(0.05)

    def _on_failure(self, failure: Failure) -> None:
        self.failure = failure
