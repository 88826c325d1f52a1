"""The user's own errors name the next action; ours can be copied too, with versions and without a word of the chat."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.services.engine_client import EngineState
from app.worker import Failure
from engine import ModelError
from tests.gui.conftest import load, wait_ready

SECRET = "my diary of last summer"


def crash(qtbot, window, loader) -> None:
    """An answer that ends in a fault of ours, whose words quote the question."""
    loader.script.crash_at, loader.script.crash_error = 5, RuntimeError(f"cannot work on {SECRET}")
    window.composer.set_text(SECRET)
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.LOST, timeout=20_000)


def test_a_fault_of_ours_can_be_copied_and_quotes_no_chat(qtbot, window, loader, caplog):
    crash(qtbot, window, loader)
    banner = window.banner
    assert "RuntimeError" in banner.text and SECRET not in banner.text
    assert (banner.action.text(), banner.second.text()) == ("Load again", "Copy details")
    qtbot.mouseClick(banner.second, Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert all(part in copied for part in ("Slipstream 0.", "mlx: ", "Scripted pair", "RuntimeError", "misbehave"))
    assert SECRET not in copied and "diary" not in copied
    assert banner.isVisible(), "copying is not the next action"
    loader.script.crash_at = None
    qtbot.mouseClick(banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert not banner.isVisible()


@pytest.mark.parametrize("problem", [ModelError("The model cannot be loaded."), MemoryError()], ids=["model", "memory"])
def test_a_fault_of_the_user_s_offers_no_details(qtbot, window, loader, problem):
    loader.script.load_error = problem
    window.services.client.load("broken")
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    assert window.banner.action.isVisible() and not window.banner.second.isVisible()
    loader.script.load_error = None
    load(qtbot, window.services.client)


def test_the_second_button_does_not_stay_for_the_next_message(qtbot, window, loader, caplog):
    crash(qtbot, window, loader)
    window.show_failure(Failure("The disk is full: free some space, then try again."))
    assert not window.banner.second.isVisible()
    loader.script.crash_at = None
    load(qtbot, window.services.client)
