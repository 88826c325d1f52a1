"""Starts the window: application, single instance, crash log, and the one way out that every kind of quitting takes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import platformdirs
from PySide6.QtCore import QEvent, QObject, QSocketNotifier, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QMessageBox

from app import mac
from app.core.os_words import reason
from app.core.words import tr
from app.language import speak
from app.services.crashlog import PREVIOUS, CrashLog
from app.services.engine_client import BUSY
from app.services.instance import SingleInstance
from app.services.trace import follow
from app.services.wiring import Services
from app.store import StoreError
from app.ui.crash_dialog import CrashDialog
from app.ui.main_window import MainWindow
from app.ui.opening import open_url
from app.worker import Loader, load_engine
from engine import __version__

QUIT_LIMIT_S = 5.0
CATCH_UP_MS = 1_500  # what nobody waits for begins when the window is there
USES = frozenset({QEvent.Type.KeyPress, QEvent.Type.MouseButtonPress, QEvent.Type.Wheel})  # somebody is at the window
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How to start: the pair to load (None: the one used last) and the data folder (None: the user's own)."""

    pair: str | None = None
    data: Path | None = None


def data_folder(options: Options) -> Path:
    """The folder of chats, settings and logs, made if need be. Raises ``OSError`` where it cannot be."""
    if options.data is not None:
        folder = options.data
    elif home := os.environ.get("SLIPSTREAM_HOME"):
        folder = Path(home)
    else:
        folder = Path(platformdirs.user_data_dir("Slipstream", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_application(argv: list[str]) -> QApplication:
    """The one QApplication, in the system's language until the user's choice is known."""
    application = QApplication(argv)
    application.setApplicationName("Slipstream")
    application.setApplicationVersion(__version__)
    application.setQuitOnLastWindowClosed(False)
    speak("system", application)
    return application


class Program(QObject):
    """The window, its services and every way to quit: window close, Quit, log-out, SIGINT and SIGTERM.

    ``ended()`` fires once all is saved and stopped.
    """

    ended = Signal()

    def __init__(self, application: QApplication, folder: Path, options: Options, loader: Loader = load_engine):
        super().__init__()
        self._application = application
        self.crash_log = CrashLog(folder)
        self.crash_log.install()
        self.instance: SingleInstance | None = None
        self._activity = mac.Activity()
        self._quitting = False
        self.services = Services(folder, loader)
        try:
            self._open(options)
        except BaseException:
            self.services.shutdown(QUIT_LIMIT_S)  # Qt ends the process hard where a thread of it still runs
            raise

    def _open(self, options: Options) -> None:
        """Makes the window and connects it. Raises ``StoreError`` and ``OSError``."""
        application = self._application
        speak(self.services.settings.current.language, application)
        self.window = MainWindow(self.services)
        follow(self.window)
        self.services.client.state_changed.connect(lambda _state: self._keep_awake())
        self.services.client.lending.began.connect(self._keep_awake)
        self.services.client.lending.ended.connect(self._keep_awake)
        self.services.downloads.active_changed.connect(lambda _active: self._keep_awake())
        self.window.quit_asked.connect(self.quit)
        self.window.closing.connect(self._on_window_closing)
        application.commitDataRequest.connect(lambda _manager: self.services.conversation.save_partial())
        self.crash_log.on_error = self.window.failures.show_fault
        self.crash_log.on_refusal = self.window.banner.show_message
        if self.crash_log.previous is not None:
            self._offer_crash_log()
        self.services.client.load(options.pair or self.services.settings.current.pair)
        self.window.fill_models()
        application.installEventFilter(self)
        self.services.updates.look_if_due()
        self._catch_up = QTimer(self, interval=CATCH_UP_MS, singleShot=True)
        self._catch_up.timeout.connect(self.services.catch_up)
        self._catch_up.start()

    def quit(self) -> None:
        """Saves, stops the engine and lets go of everything; calling it again changes nothing."""
        if self._quitting:
            return
        self._quitting = True
        self._catch_up.stop()
        self._application.removeEventFilter(self)
        self.window.retire()
        stopped = self.services.shutdown(QUIT_LIMIT_S)
        if self.instance is not None:
            self.instance.release()
        self.crash_log.close()
        if not stopped:
            # A thread hangs in native code, the engine's or a name look-up. All is saved; a normal exit would wait for it.
            os._exit(0)
        self.ended.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The Dock's click brings a closed window back, its Quit goes the same way as ours; links and files are opened."""
        if event.type() in USES:
            self.services.learning.touch()
        if watched is self._application:
            if event.type() == QEvent.Type.ApplicationActivate and mac.IS_MAC and not self.window.isVisible():
                self.window.raise_window()
            elif event.type() == QEvent.Type.FileOpen:
                open_url(self.window, event.url())  # type: ignore[attr-defined]
                return True
            elif event.type() == QEvent.Type.Quit:
                self.quit()
                return True
        return False

    def _keep_awake(self) -> None:
        """No sleep while the engine works or bytes arrive, and exactly then."""
        client, downloads = self.services.client, self.services.downloads
        self._activity.hold(client.state in BUSY or client.lending.active or downloads.active)

    def _on_window_closing(self) -> None:
        if mac.IS_MAC:
            self.services.conversation.save_partial()
            self.window.save_state()
        else:
            self.quit()

    def _offer_crash_log(self) -> None:
        self.window.banner.show_message(
            tr("Slipstream ended with a problem last time. What is known of it was kept."),
            tr("Show"),
            lambda: CrashDialog(self.services.folder / PREVIOUS, self.window).open(),
        )


class SignalBridge(QObject):
    """Brings SIGINT and SIGTERM to the event loop at once; Python alone would wait for the next bytecode here."""

    def __init__(self, program: Program):
        super().__init__()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._before = signal.set_wakeup_fd(self._writer.fileno())
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_bytes)
        self._program = program
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ignore)

    def _ignore(self, _number: int, _frame: FrameType | None) -> None:
        """The wake-up bytes carry the signal; this handler only keeps Python from ending the process."""

    def _on_bytes(self) -> None:
        if {signal.SIGINT, signal.SIGTERM} & set(self._reader.recv(64)):
            self._program.quit()

    def close(self) -> None:
        """Restores what was there before."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._reader.close()
        self._writer.close()


def _refused(text: str) -> int:
    """Says why no window opens; a program that the Finder started has no terminal to say it in."""
    print(text, file=sys.stderr)
    if QApplication.platformName() == "cocoa" and not (sys.stderr is not None and sys.stderr.isatty()):
        QMessageBox.critical(None, "Slipstream", text)
    return 1


def run(options: Options, loader: Loader = load_engine) -> int:
    """Opens the window and returns the exit code: 0 after quitting, or when another instance was raised instead."""
    application = make_application(sys.argv[:1])
    try:
        folder = data_folder(options)
    except OSError as error:
        return _refused(tr("The data folder cannot be made ({reason}): choose another with --data.", reason=error))
    instance = SingleInstance(folder)
    try:
        if not instance.acquire():
            if instance.raise_first():
                return 0
            return _refused(tr("Slipstream runs already but does not answer: quit it, or start with another --data."))
        program = Program(application, folder, options, loader)
    except StoreError as error:
        instance.release()
        return _refused(str(error))
    except OSError as error:
        instance.release()
        text = tr("{file} cannot be written ({reason}): make it writable, or choose another folder with --data.",
                  file=error.filename, reason=reason(error))  # fmt: skip
        return _refused(text)
    program.instance = instance
    instance.raise_requested.connect(program.window.raise_window, Qt.ConnectionType.QueuedConnection)
    program.ended.connect(lambda: application.exit(0))
    bridge = SignalBridge(program)
    try:
        program.window.show()
        program.window.first_run.tour.start_once()
        return application.exec()
    finally:
        bridge.close()
        program.quit()  # after an error too: Qt ends the process hard where a thread of it still runs
