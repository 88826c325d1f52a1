"""Every screen of the program, each a function that puts a window into it and returns the widget to look at."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import httpx2
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtWidgets import QApplication, QWidget

from app.core.chat import Attachment
from app.core.pair_options import PairOptions
from app.core.updates import Release
from app.services.engine_client import EngineState
from app.services.server import ServerState
from app.ui.context_meter import ContextUse
from app.ui.crash_dialog import CrashDialog
from app.ui.deleted_dialog import DeletedDialog
from app.ui.links import ask_to_open
from app.ui.main_window import MainWindow
from app.ui.update_dialog import UpdateDialog
from engine import CostCurve

Scene = Callable[[MainWindow], QWidget]
RELEASE = Release("9.9.9", "14.0", "2026-01-01", "Notes of the release.", "https://slipstream.example", "0" * 64)
COSTS = CostCurve((1, 2, 3, 4, 6, 8), (0.048, 0.052, 0.055, 0.060, 0.066, 0.070), (0.004, 0.006, 0.006, 0.007, 0.008, 0.009))
PROMPT = "Explain how rainbows form."
LIMIT_S = 20.0
COME_BACK = 503


def pump(seconds: float) -> None:
    """Lets the event loop run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QCoreApplication.processEvents()
        time.sleep(0.002)


def wait(done: Callable[[], bool]) -> None:
    """Lets it run until ``done``."""
    end = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < end, "the screen did not come"
        pump(0.02)


def idle(window: MainWindow) -> None:
    """Waits until nothing is asked for any more."""
    talk = window.services.conversation
    wait(lambda: window.services.client.state is EngineState.READY and talk.active is None and talk.comparison.running is None)


def ask(window: MainWindow, mode: str = "dflash") -> MainWindow:
    """Sends the prompt in ``mode`` and waits for the answer."""
    window.do.set_mode(mode)  # type: ignore[arg-type]
    window.composer.set_text(PROMPT)
    window.do.send()
    idle(window)
    return window


def newest(run: Callable[[], object]) -> QWidget:
    """The window that ``run`` opens."""
    before = set(QApplication.topLevelWidgets())
    run()
    pump(0.05)
    (opened,) = (widget for widget in QApplication.topLevelWidgets() if widget.isVisible() and widget not in before)
    return opened


def banner(window: MainWindow) -> QWidget:
    """A fault of ours with both its buttons."""
    ask(window)
    window.failures.show_fault("Something went wrong (ValueError). The chat is saved; the details are in the log.", "")
    return window


def details(window: MainWindow) -> QWidget:
    """The meter's details of an answer, with measured costs."""
    ask(window)
    client = window.services.client
    assert client.info is not None
    client.info = replace(client.info, costs=COSTS)
    return newest(window.do.show_meter_details)


def tour(window: MainWindow, step: int = 0) -> QWidget:
    """One step of the tour."""
    window.do.show_tour()
    for _ in range(step):
        window.first_run.tour.next.click()
    return window


def settings(window: MainWindow, page: int) -> QWidget:
    """One page of the settings."""
    dialog = newest(window.do.show_settings)
    dialog.pages.setCurrentIndex(page)  # type: ignore[attr-defined]
    pump(0.05)
    return dialog


def comparisons(window: MainWindow) -> QWidget:
    """Earlier comparisons, one of them."""
    ask(window, "compare")
    return newest(window.do.show_comparisons)


def crash(window: MainWindow) -> QWidget:
    """The log of a run that was aborted."""
    path = window.services.folder / "crash-previous.log"
    path.write_text("Fatal Python error: Aborted\n")
    return newest(lambda: CrashDialog(path, window).open())


def deleted(window: MainWindow) -> QWidget:
    """One chat among the deleted."""
    ask(window)
    window.do.delete_chat()
    return newest(lambda: DeletedDialog(window.services.shelf, window).open())


def context(window: MainWindow) -> QWidget:
    """What takes how much of the context."""
    window.composer.context.show_use(ContextUse(5, 100, [("Chat", 5)]))
    return newest(window.composer.context.show_details)


def start_anew(window: MainWindow, port: int) -> None:
    """The server is off, then on its way at ``port``."""
    server = window.services.server
    server.stop()
    wait(lambda: server.state is ServerState.OFF)
    server.use_port(port)


def serving(window: MainWindow) -> MainWindow:
    """The server is on, on any free port, and answered two programs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start_anew(window, port)
    wait(lambda: window.services.server.state is ServerState.ON)
    answers: list[int] = []

    def ask_both() -> None:
        url = window.services.server.url
        body = {"messages": [{"role": "user", "content": PROMPT}], "model": "scripted"}
        for question, agent in ((body, "curl/8.5.0"), (body | {"model": "gpt-4"}, "OpenAI/Python 2.0.0")):
            request = {"json": question, "headers": {"User-Agent": agent}, "timeout": LIMIT_S, "trust_env": False}
            while (status := httpx2.post(f"{url}/chat/completions", **request).status_code) == COME_BACK:
                time.sleep(0.05)  # the model is not offered yet
            answers.append(status)

    asking = threading.Thread(target=ask_both)
    asking.start()
    wait(lambda: not asking.is_alive())
    assert answers == [200, 404]
    return window


def served(window: MainWindow) -> QWidget:
    """The server's page while it is on."""
    serving(window)
    dialog = newest(lambda: window.do.show_settings(server=True))
    pump(0.05)
    return dialog


def port_taken(window: MainWindow) -> QWidget:
    """The server's page, with a port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        start_anew(window, other.getsockname()[1])
        wait(lambda: window.services.server.problem is not None)
    dialog = newest(lambda: window.do.show_settings(server=True))
    pump(0.05)
    return dialog
def pair_options(window: MainWindow) -> QWidget:
    """How the model is kept in memory, all its words on show."""
    dialog = newest(window.do.show_pair_options)
    dialog.anyway.setChecked(True)  # type: ignore[attr-defined]
    pump(0.3)
    return dialog


def with_options(window: MainWindow) -> MainWindow:
    """Side by side with every option of the engine, named where it counts."""
    services = window.services
    services.pair_options.keep("scripted", PairOptions(8, 4))
    window.do.reload_model()
    idle(window)
    options = services.conversation.options
    options.set(replace(options.current, exact=True, sparse=0.5))
    return ask(window, "compare")


def filled(window: MainWindow) -> QWidget:
    """A chat with everything beside it: options, the search in it, attachments."""
    ask(window)
    window.resize(max(window.width(), 1100), window.height())
    window.do.toggle_options()
    window.do.find_in_chat()
    window.composer.add(Attachment("notes.txt", "some text"))
    window.composer.add(Attachment("report.pdf", "[Page 1]\nsome text", "pdf", 225, 500))
    window.composer.chips.add_reading("plan.docx").show_pages(0, 12)
    return window


SCENES: dict[str, Scene] = {
    "new-chat": lambda window: window,
    "chat": ask,
    "side-by-side": lambda window: ask(window, "compare"),
    "fault": banner,
    "tour-1": tour,
    "tour-2": lambda window: tour(window, 1),
    "tour-3": lambda window: tour(window, 2),
    "settings-general": lambda window: settings(window, 0),
    "settings-answers": lambda window: settings(window, 1),
    "settings-models": lambda window: settings(window, 2),
    "settings-server": lambda window: settings(window, 3),
    "settings-server-on": served,
    "settings-server-taken": port_taken,
    "settings-privacy": lambda window: settings(window, 4),
    "settings-advanced": lambda window: settings(window, 5),
    "serving": serving,
    "meter-details": details,
    "comparisons": comparisons,
    "models": lambda window: newest(window.do.show_models),
    "model-details": lambda window: newest(window.do.show_load_report),
    "about": lambda window: newest(window.do.show_about),
    "update": lambda window: newest(lambda: UpdateDialog(RELEASE, window).open()),
    "forget": lambda window: newest(window.do.forget_learned),
    "crash": crash,
    "deleted": deleted,
    "palette": lambda window: newest(window.do.show_palette),
    "link": lambda window: newest(lambda: ask_to_open(QUrl("https://example.org"), window)),
    "answer-details": lambda window: newest(ask(window).transcript.answers[-1].show_details),
    "context": context,
    "filled": filled,
    "pair-options": pair_options,
    "with-options": with_options,
}
