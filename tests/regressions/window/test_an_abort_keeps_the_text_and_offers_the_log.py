"""jundot/omlx#1437: a SIGABRT out of the engine took the answer with it, and nobody learned why."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.main import Options, Program
from app.services.crashlog import PREVIOUS
from app.ui.crash_dialog import CrashDialog
from tests.gui.conftest import delete_later, wait_ready
from tests.regressions.window.running import answering


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_the_next_start_shows_the_text_and_offers_what_is_known(qapp, qtbot, tmp_path: Path, loader):
    process, _children = answering(tmp_path, "wait")
    process.send_signal(signal.SIGABRT)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGABRT
    program = Program(qapp, tmp_path, Options(pair="scripted"), loader)
    try:
        program.window.show()
        wait_ready(qtbot, program.services.client)
        answer = program.window.transcript.answers[-1]
        assert len(answer.message.content) > 100 and answer.message.state == "interrupted"
        assert "ended with a problem" in program.window.banner.text
        qtbot.mouseClick(program.window.banner.action, Qt.MouseButton.LeftButton)
        shown = program.window.findChild(CrashDialog).log.toPlainText()
        assert "Aborted" in shown and "tests/" in (tmp_path / PREVIOUS).read_text() and answer.message.content[:40] not in shown
    finally:
        program.quit()
        delete_later(program.window)
        delete_later(program.services)
