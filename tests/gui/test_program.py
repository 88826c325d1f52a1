"""Starting and ending: closing in every state, one window per folder, signals, crash logs; test_failed_start.py has the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLockFile, Qt
from PySide6.QtGui import QGuiApplication

from app.main import Options, Program, SignalBridge
from app.services.crashlog import CRASH, LOG, CrashLog
from app.services.engine_client import EngineState
from app.services.instance import SingleInstance
from app.services.wiring import CHATS
from app.store import ChatStore
from app.ui.crash_dialog import CrashDialog
from tests.gui.conftest import delete_later, wait_ready
from tests.scripted import Script, ScriptedLoader


@pytest.fixture
def start(qapp, qtbot, tmp_path, loader):
    """Starts the program as ``app.main.run`` does, short of the event loop; whatever is still open is quit at the end."""
    made = []

    def make(folder=tmp_path) -> Program:
        program = Program(qapp, folder, Options(pair="scripted"), loader)
        made.append(program)
        program.window.show()
        return program

    yield make
    for program in made:
        program.quit()
        delete_later(program.window)
        delete_later(program.services)


def kept(folder):
    store = ChatStore(folder / CHATS)
    try:
        return [message for chat in store.chats() for message in store.messages(chat.id)]
    finally:
        store.close()


@pytest.mark.parametrize("state", ["load", "prefill", "decode", "compare", "idle"])
@pytest.mark.parametrize("way", ["close", "quit"])
def test_ending_in_any_state_saves_the_text_and_leaves_nothing_running(qtbot, start, loader, tmp_path, state, way):
    loader.script.load_s = 30.0 if state == "load" else 0.0
    program = start()
    client = program.services.client
    if state != "load":
        wait_ready(qtbot, client)
        loader.script.prefill_s = 30.0 if state == "prefill" else 0.0
        loader.script.rate, loader.script.tokens = 20.0, 400
    if state in ("prefill", "decode", "compare"):
        program.window.do.set_mode("compare" if state == "compare" else "dflash")
        program.window.composer.set_text("Tell me more")
        program.window.do.send()
        wanted = EngineState.PREFILL if state == "prefill" else EngineState.DECODING
        qtbot.waitUntil(lambda: client.state is wanted, timeout=20_000)
    if state == "decode":
        qtbot.waitUntil(lambda: bool(program.services.conversation.active.text), timeout=20_000)
    program.window.composer.set_text("unsent thought")
    program.window.close() if way == "close" else program.window.do.quit()
    assert not client._thread.isRunning() and all(engine.closed for engine in loader.engines)
    messages = kept(tmp_path)
    if state == "decode":
        assert messages[-1].state == "stopped" and messages[-1].content
    if state == "prefill":
        assert [message.state for message in messages] == ["sent", "stopped"]
    if state != "compare":
        again = start()
        assert again.window.composer.text() == "unsent thought"


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)")  # the offscreen platform has no stacking
def test_a_second_start_raises_the_first_window_and_leaves(qtbot, start, tmp_path):
    program = start()
    wait_ready(qtbot, program.services.client)
    first = SingleInstance(tmp_path)
    assert first.acquire()
    first.raise_requested.connect(program.window.raise_window, Qt.ConnectionType.QueuedConnection)
    program.window.showMinimized()
    script = (
        "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication;"
        "from app.services.instance import SingleInstance; app = QCoreApplication([]);"
        "second = SingleInstance(Path(sys.argv[1])); assert not second.acquire(); sys.exit(0 if second.raise_first() else 3)"
    )
    with qtbot.waitSignal(first.raise_requested, timeout=20_000):
        second = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=20_000)
    assert second.returncode == 0
    qtbot.waitUntil(lambda: not program.window.isMinimized(), timeout=20_000)
    first.release()
    delete_later(first)


def test_different_data_folders_are_independent(qtbot, tmp_path):
    instances = [SingleInstance(tmp_path / name) for name in ("a", "b")]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert all(instance.acquire() for instance in instances)
    for instance in instances:
        instance.release()
        delete_later(instance)


def test_the_lock_of_a_killed_process_is_taken_over(qtbot, tmp_path):
    script = (
        "import os, signal, sys; from PySide6.QtCore import QLockFile; lock = QLockFile(sys.argv[1]);"
        "lock.setStaleLockTime(0); assert lock.tryLock(0); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "slipstream.lock"
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL and path.exists()
    instance = SingleInstance(tmp_path)
    assert instance.acquire()
    instance.release()
    delete_later(instance)


def test_a_first_instance_that_does_not_answer_is_noticed(qtbot, tmp_path):
    lock = QLockFile(str(tmp_path / "slipstream.lock"))
    assert lock.tryLock(0)
    second = SingleInstance(tmp_path)
    assert not second.acquire() and not second.raise_first()
    lock.unlock()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_in_order(qtbot, start, loader, tmp_path, number):
    program = start()
    wait_ready(qtbot, program.services.client)
    loader.script.rate, loader.script.tokens = 20.0, 400
    program.window.composer.set_text("Tell me more")
    program.window.do.send()
    qtbot.waitUntil(lambda: program.services.client.state is EngineState.DECODING, timeout=20_000)
    bridge = SignalBridge(program)
    os.kill(os.getpid(), number)
    qtbot.waitUntil(lambda: program._quitting, timeout=20_000)
    bridge.close()
    delete_later(bridge)
    assert kept(tmp_path)[-1].state == "stopped"


def test_nothing_the_window_had_planned_runs_after_quitting(qtbot, start):
    program = start()
    wait_ready(qtbot, program.services.client)
    program.window.composer.edit.setPlainText("typed just before")
    program.window.sidebar.search.setText("searched just before")
    program.quit()
    qtbot.wait(500)  # longer than every timer of the window; an error in a slot fails the test


def test_the_dock_s_quit_goes_the_orderly_way(qtbot, qapp, start, loader):
    program = start()
    wait_ready(qtbot, program.services.client)
    QCoreApplication.sendEvent(qapp, QEvent(QEvent.Type.Quit))
    assert program._quitting and loader.engines[0].closed


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_an_error_in_a_slot_is_logged_shown_and_offered_at_the_next_start(qtbot, start, tmp_path, capfd):
    program = start()
    wait_ready(qtbot, program.services.client)
    try:
        raise ValueError("scripted mistake")
    except ValueError as error:
        program.crash_log._on_uncaught(type(error), error, error.__traceback__)
    assert "Something went wrong" in program.window.banner.text and program.window.banner.second.text() == "Copy details"
    program.quit()
    assert "scripted mistake" in (tmp_path / CRASH).read_text() and "scripted mistake" in (tmp_path / LOG).read_text()
    again = start()
    assert "ended with a problem" in again.window.banner.text
    qtbot.mouseClick(again.window.banner.action, Qt.MouseButton.LeftButton)
    dialog = again.window.findChild(CrashDialog)
    assert "ValueError" in dialog.log.toPlainText() and "mlx: " in dialog.log.toPlainText()
    assert "scripted mistake" not in dialog.log.toPlainText()  # an error's words may quote a chat
    qtbot.mouseClick(dialog.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == dialog.log.toPlainText()
    again.quit()
    assert not (tmp_path / CRASH).exists() and CrashLogPeek(tmp_path).previous is None


class CrashLogPeek(CrashLog):
    """Reads what the next start would find, then lets go of the files."""

    def __init__(self, folder):
        super().__init__(folder)
        self.close()


def test_errors_on_other_threads_are_logged_and_touch_no_widget(qtbot, tmp_path, capfd):
    crash_log, shown = CrashLog(tmp_path), []
    crash_log.install()
    crash_log.on_error = lambda *words: shown.append(words)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    crash_log.close()
    assert "ZeroDivisionError" in (tmp_path / CRASH).read_text() and shown == []


def test_a_hard_crash_leaves_a_trace_for_the_next_start(tmp_path):
    script = (
        "import sys, faulthandler; from pathlib import Path; from app.services.crashlog import CrashLog;"
        "CrashLog(Path(sys.argv[1])).install(); faulthandler._sigabrt()"
    )
    crashed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True)
    assert crashed.returncode == -signal.SIGABRT
    peek = CrashLogPeek(tmp_path)
    assert peek.previous is not None and "Aborted" in peek.previous.read_text()


def test_an_engine_that_never_stops_does_not_keep_the_program_and_the_text_is_saved(tmp_path):
    script = """
import sys, threading, time
from pathlib import Path
import app.main as main
from app.services.engine_client import EngineState
from tests.scripted import Script, ScriptedLoader
from PySide6.QtCore import QTimer
main.QUIT_LIMIT_S = 0.5
folder = Path(sys.argv[1])
application = main.make_application(["slipstream"])
loader = ScriptedLoader(Script(stall_at=5, deaf_stall=threading.Event()))
program = main.Program(application, folder, main.Options(pair="scripted"), loader)
program.window.show()
def step():
    if program.services.client.state is EngineState.READY:
        program.window.composer.set_text("Hello")
        program.window.do.send()
    elif program.services.conversation.active and program.services.conversation.active.text:
        program.quit()
timer = QTimer(interval=50)
timer.timeout.connect(step)
timer.start()
application.exec()
sys.exit(7)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], timeout=60, check=False,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    assert done.returncode == 0
    last = kept(tmp_path)[-1]
    assert last.state == "stopped" and last.content.startswith("A rainbow")


def test_screenshots_show_a_real_run_and_name_their_files(qtbot, qapp, tmp_path):
    from app.screenshot import take

    pictures = take(tmp_path / "pictures", "scripted", ScriptedLoader(Script(tokens=30)))
    assert [picture.name for picture in pictures] == ["slipstream.png", "slipstream-compare.png"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert take(tmp_path / "one.png", "scripted", ScriptedLoader(Script(tokens=30)))[1].name == "one-compare.png"


def test_a_screenshot_of_a_pair_that_does_not_load_says_why(qtbot, qapp, tmp_path):
    from app.screenshot import ScreenshotError, take
    from engine import ModelError

    with pytest.raises(ScreenshotError, match="choose another pair"):
        take(tmp_path, "broken", ScriptedLoader(Script(load_error=ModelError("Broken: choose another pair."))))


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_on_a_mac_closing_the_window_keeps_the_program_and_its_answer(qtbot, qapp, start, loader, monkeypatch):
    monkeypatch.setattr("app.mac.IS_MAC", True)
    monkeypatch.setattr("app.ui.main_window.IS_MAC", True)
    monkeypatch.setattr("app.mac._process_info", lambda: None)
    program = start()
    wait_ready(qtbot, program.services.client)
    loader.script.rate, loader.script.tokens = 200.0, 60
    program.window.composer.set_text("Tell me more")
    program.window.do.send()
    qtbot.waitUntil(lambda: program.services.client.state is EngineState.DECODING, timeout=20_000)
    program.window.close()
    assert not program.window.isVisible() and not program._quitting
    wait_ready(qtbot, program.services.client)
    assert program.services.conversation.messages[-1].state == "done"
    actions = program.window.actions_by_id
    some = ("new_chat", "models", "settings", "delete_chat", "palette", "answer_again")
    assert [name for name in some if actions[name].isEnabled()] == ["new_chat", "models", "settings"], "the menus stay on a Mac"
    QCoreApplication.sendEvent(qapp, QEvent(QEvent.Type.ApplicationActivate))
    assert program.window.isVisible() and actions["delete_chat"].isEnabled()
    program.window.close()
    program.window.do.new_chat()
    assert program.window.isVisible()


def test_the_mac_is_kept_awake_exactly_while_the_engine_works(monkeypatch):
    from app import mac

    class Process:
        def __init__(self):
            self.log: list[str] = []

        def beginActivityWithOptions_reason_(self, options, reason):
            self.log.append("begin")
            return "token"

        def endActivity_(self, token):
            self.log.append(f"end {token}")

    process = Process()
    monkeypatch.setattr(mac, "_process_info", lambda: process)
    activity = mac.Activity()
    for working in (False, True, True, False, False):
        activity.hold(working)
    assert process.log == ["begin", "end token"]
