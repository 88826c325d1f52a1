"""Window tests: real widgets without a screen, a scripted engine behind the real worker, and nothing left running."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import keyring
import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread, QTimer

from app.main import Program
from app.services.engine_client import EngineClient, EngineState
from app.services.wiring import Services
from app.ui.main_window import MainWindow
from app.ui.slices import slices
from tests.gui.serving import Keychain, switch_on
from tests.scripted import Script, ScriptedLoader


def delete_later(thing) -> None:
    """Deletes a Qt object now, as its event loop would."""
    thing.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(autouse=True)
def nothing_left_running(qapp) -> Iterator[None]:
    """Fails a test that leaves a thread running or a timer ticking."""
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    while slices().waiting:  # to lay out what is gone
        QCoreApplication.processEvents()
    gc.collect()
    left = end_what_is_left()
    alive = [thing for thing in gc.get_objects() if type(thing) in (QThread, QTimer) and shiboken6.isValid(thing)]
    threads = [thing.objectName() for thing in alive if isinstance(thing, QThread) and thing.isRunning()]
    timers = [repr(thing.parent()) for thing in alive if isinstance(thing, QTimer) and thing.isActive()]
    assert not left, f"made by the test and not ended: {left}"
    assert not threads, f"threads still run: {threads}"
    assert not timers, f"timers still tick: {timers}"


def end_what_is_left() -> list[str]:
    """Ends what a test began and left, in order, and names it. A test that fails half-way leaves programs, services and engines,
    its traceback keeps them, and a thread of theirs that still runs at the end takes the whole run down."""
    there = [thing for thing in gc.get_objects() if issubclass(type(thing), QObject) and shiboken6.isValid(thing)]
    programs = [thing for thing in there if isinstance(thing, Program) and not thing._quitting]
    for program in programs:
        program.quit()
    services = [thing for thing in there if isinstance(thing, Services) and not thing._closed]
    for window in [thing for thing in there if isinstance(thing, MainWindow) and thing.services in services]:
        window.retire()
    for each in services:
        each.shutdown(5.0)
    clients = [thing for thing in there if isinstance(thing, EngineClient) and thing._thread.isRunning()]
    for client in clients:
        client.shutdown(5.0)
    left = [*programs, *services, *clients]
    for thing in [*(thing for thing in there if left and isinstance(thing, MainWindow)), *left]:
        if shiboken6.isValid(thing):
            delete_later(thing)
    return [type(thing).__name__ for thing in left]


@pytest.fixture
def loader() -> ScriptedLoader:
    """The scripted engine's loader; set ``loader.script`` fields before or between loads."""
    return ScriptedLoader(Script())


@pytest.fixture
def client(qtbot, loader) -> Iterator[EngineClient]:
    """An engine client over the scripted engine, nothing loaded yet."""
    client = EngineClient(loader)
    yield client
    assert client.shutdown(20.0)
    delete_later(client)


@pytest.fixture
def make_services(qtbot, tmp_path, loader) -> Iterator[Callable[[], Services]]:
    """Makes services over ``tmp_path``, one after the other, as restarts would; the last is shut down at the end."""
    made: list[Services] = []

    def make(folder: Path = tmp_path) -> Services:
        made.append(Services(folder, loader))
        return made[-1]

    yield make
    for services in made:
        if shiboken6.isValid(services):
            assert services.shutdown(20.0)
            delete_later(services)


@pytest.fixture
def services(make_services) -> Services:
    """Services with an empty chat file and no model loaded."""
    return make_services()


@pytest.fixture
def make_window(qtbot) -> Iterator[Callable[[Services], MainWindow]]:
    """Shows a main window over services."""
    made: list[MainWindow] = []

    def make(services: Services) -> MainWindow:
        window = MainWindow(services)
        made.append(window)
        window.show()
        window.activateWindow()  # on a screen without a window manager nobody else does
        qtbot.waitExposed(window)
        return window

    yield make
    for window in made:
        if shiboken6.isValid(window):
            window.compare.stop_replay()
            window.hide()
            delete_later(window)


@pytest.fixture
def window(make_window, services, qtbot) -> MainWindow:
    """A window with the scripted pair loaded and ready."""
    window = make_window(services)
    load(qtbot, services.client)
    return window


def load(qtbot, client: EngineClient) -> None:
    """Loads the scripted pair and waits."""
    client.load("scripted")
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=20_000)


def wait_laid_out(qtbot, window: MainWindow) -> None:
    """Waits until everything that was put off is on show."""
    qtbot.waitUntil(lambda: not slices().waiting and not window.transcript._more.isActive(), timeout=20_000)


def wait_ready(qtbot, client: EngineClient, timeout: int = 20_000) -> None:
    """Waits until the engine takes requests again."""
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=timeout)


@pytest.fixture
def manager(hub, window, qtbot):
    """The Models window over an empty hub, opened and filled."""
    with qtbot.waitSignal(window.services.library.changed, timeout=20_000):
        window.actions_by_id["models"].trigger()
    return window.model_manager.window


@pytest.fixture
def keychain() -> Iterator[Keychain]:
    """A keychain in the place of the system's."""
    before, memory = keyring.get_keyring(), Keychain()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


@pytest.fixture
def others() -> Iterator[ThreadPoolExecutor]:
    """Other programs, each on a thread."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def serving(qtbot, window) -> MainWindow:
    """A window with the scripted pair, serving."""
    switch_on(qtbot, window.services)
    return window
