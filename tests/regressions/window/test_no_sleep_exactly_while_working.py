"""jundot/omlx#1081, ollama/ollama PR#13675, hiddify/hiddify-app#2343: the machine slept in the middle of an answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from PySide6.QtWidgets import QApplication

from app import mac
from app.main import Options, Program
from tests.gui.conftest import delete_later, wait_ready
from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage
from tests.gui.serving import answer_of, ask, switch_on


class Activities:
    """Stands in for macOS: counts the activities that are held."""

    def __init__(self) -> None:
        self.held = 0

    def beginActivityWithOptions_reason_(self, options, reason):
        self.held += 1
        return "token"

    def endActivity_(self, token):
        self.held -= 1


@pytest.fixture
def activities(monkeypatch) -> Activities:
    made = Activities()
    monkeypatch.setattr(mac, "_process_info", lambda: made)
    return made


@pytest.fixture
def program(qtbot, qapp, hub, activities, loader, tmp_path):
    assert isinstance(qapp, QApplication)
    started = Program(qapp, tmp_path, Options("scripted"), loader)
    started.window.show()
    wait_ready(qtbot, started.services.client)
    yield started
    started.quit()
    delete_later(started.window)
    delete_later(started.services)
    delete_later(started)


def test_an_activity_is_held_while_an_answer_is_written_and_not_after(qtbot, program, activities, loader):
    assert activities.held == 0
    loader.script.rate, loader.script.tokens = 100.0, 60
    program.window.composer.set_text("Hello")
    program.window.do.send()
    qtbot.waitUntil(lambda: activities.held == 1, timeout=20_000)
    wait_ready(qtbot, program.services.client)
    assert activities.held == 0


def test_an_activity_is_held_while_another_program_s_answer_is_written(qtbot, program, activities, loader):
    switch_on(qtbot, program.services)
    assert activities.held == 0
    loader.script.rate, loader.script.tokens = 100.0, 60
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(ask(program.services))
        qtbot.waitUntil(lambda: activities.held == 1, timeout=20_000)
        assert answer_of(qtbot, asked).choices
    qtbot.waitUntil(lambda: activities.held == 0, timeout=20_000)


def test_an_activity_is_held_while_bytes_are_fetched_and_not_while_paused(qtbot, hub, program, activities):
    offer(hub, held=0.75)
    downloads = program.services.downloads
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 4)
    assert activities.held == 1
    downloads.pause(MODEL)
    qtbot.waitUntil(lambda: activities.held == 0, timeout=20_000)
    downloads.get(MODEL)
    qtbot.waitUntil(lambda: activities.held == 1, timeout=20_000)
    hub.held = None
    wait_stage(qtbot, downloads, "done")
    assert activities.held == 0


def test_an_answer_that_ends_does_not_let_a_download_sleep(qtbot, hub, program, activities):
    offer(hub, held=0.75)
    program.services.downloads.get(MODEL)
    wait_bytes(qtbot, program.services.downloads, SIZE // 8)
    program.window.composer.set_text("Hello")
    program.window.do.send()
    wait_ready(qtbot, program.services.client)
    assert activities.held == 1
    hub.held = None
    wait_stage(qtbot, program.services.downloads, "done")
    assert activities.held == 0
