"""Side by side: both texts live, a replay on one clock, the verdict and the report."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.services.engine_client import EngineState
from tests.gui.conftest import load, wait_ready


def compare(qtbot, window, prompt: str = "Explain rainbows") -> None:
    """Runs both modes on ``prompt``."""
    window.do.set_mode("compare")
    window.composer.set_text(prompt)
    window.do.send()
    run = window.services.conversation.comparison
    qtbot.waitUntil(lambda: run.comparison is not None and run.running is None, timeout=10_000)
    wait_ready(qtbot, window.services.client)


def test_both_texts_both_rates_and_the_verdict_are_shown(qtbot, window, loader):
    loader.script.rate = 400.0
    compare(qtbot, window)
    view, comparison = window.compare, window.services.conversation.comparison.comparison
    assert window.stack.currentWidget() is view
    for name, arm in (("baseline", comparison.baseline), ("dflash", comparison.dflash)):
        assert view.panes[name].body.text == arm.finished.text
        assert view.panes[name].rate.text() == f"{arm.finished.statistics.decode_tok_s:,.0f} tok/s"
        assert view.panes[name].clock.text() == f"{arm.duration_s:.1f} s"
    assert view.verdict.text() == comparison.verdict_line()
    assert view.verdict.text().endswith("identical, 40 tokens")
    assert comparison.speedup == pytest.approx(2.0, rel=0.25)


def test_differing_texts_are_named_with_the_first_token_that_differs(qtbot, window, loader):
    loader.script.text_by_mode = {"dflash": "A rainbow forms when light enters a pond. "}
    compare(qtbot, window)
    verdict = window.services.conversation.comparison.comparison.verdict
    assert not verdict.identical and verdict.first_difference == 4
    assert "differs from token 4" in window.compare.verdict.text()
    assert "sunlight" in window.compare.verdict.text() and "light" in window.compare.verdict.text()


def test_text_is_shown_while_an_arm_runs(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 40.0, 200
    window.do.set_mode("compare")
    window.composer.set_text("Explain rainbows")
    window.do.send()
    panes = window.compare.panes
    qtbot.waitUntil(lambda: len(panes["baseline"].body.text) > 20, timeout=5_000)
    assert panes["baseline"].rate.text() == "running" and panes["dflash"].rate.text() == "waits"
    assert not window.compare.replay_button.isEnabled()
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert "stopped" in window.compare.verdict.text() and panes["baseline"].body.text


def test_the_replay_plays_both_on_one_clock(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 60.0, 40
    compare(qtbot, window)
    view, comparison = window.compare, window.services.conversation.comparison.comparison
    began = time.monotonic()
    qtbot.mouseClick(view.replay_button, Qt.MouseButton.LeftButton)
    assert view.replaying
    qtbot.waitUntil(lambda: view.panes["dflash"].body.text == comparison.dflash.text, timeout=5_000)
    assert len(view.panes["baseline"].body.text) < len(comparison.baseline.text)
    qtbot.waitUntil(lambda: not view.replaying, timeout=5_000)
    assert time.monotonic() - began == pytest.approx(comparison.duration_s, abs=0.4)
    assert view.panes["baseline"].body.text == comparison.baseline.text


def test_the_report_holds_the_prompt_both_rates_and_the_verdict(qtbot, window):
    compare(qtbot, window)
    qtbot.mouseClick(window.compare.copy_button, Qt.MouseButton.LeftButton)
    report = QGuiApplication.clipboard().text()
    comparison = window.services.conversation.comparison.comparison
    assert "Explain rainbows" in report and "Scripted pair" in report
    assert "identical" in report and "mlx" in report
    assert comparison.dflash.text.split(".")[0] in report or f"{comparison.dflash.tok_s:.0f}" in report


def test_the_chat_keeps_the_answer_and_the_comparison_can_be_reopened(qtbot, window):
    compare(qtbot, window)
    qtbot.mouseClick(window.compare.close_button, Qt.MouseButton.LeftButton)
    assert window.stack.currentWidget() is window.transcript
    assert window.transcript.answers[-1].body.text == window.services.conversation.comparison.comparison.dflash.text
    window.do.show_comparison()
    assert window.stack.currentWidget() is window.compare


def test_a_crash_in_an_arm_is_shown_and_the_other_text_is_kept(qtbot, window, loader, caplog):
    window.services.conversation.comparison.arm_started.connect(
        lambda name: setattr(loader.script, "crash_at", 5 if name == "dflash" else None)
    )
    window.do.set_mode("compare")
    window.composer.set_text("Explain rainbows")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.LOST, timeout=5_000)
    assert "failed" in window.compare.verdict.text() and "engine failed" in window.banner.text
    assert len(window.compare.panes["baseline"].body.text) > 100
    loader.script.crash_at = None
    load(qtbot, window.services.client)
