"""The meter strip: what it shows of the events, and that its parts keep their places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.core.meter import MeterSnapshot
from app.ui.meter_strip import MeterStrip, figures_of
from tests.gui.conftest import load, wait_ready

# The offscreen platform says so of every dialog of fixed size; it is no fault of the window's.
OFFSCREEN_DIALOG = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")


def test_the_meter_strip_shows_what_the_events_say(qtbot, window):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    figures = window.services.conversation.messages[-1].statistics
    shown = {key: label.text() for key, label in window.meter.figures.items()}
    assert shown == figures_of(window.services.meter.snapshot())
    assert shown["tokens"] == f"{figures['tokens_per_cycle']:.1f}\u00a0tok/cycle"
    assert shown["acceptance"] == f"{figures['acceptance_rate'] * 100:.0f}\u00a0% accepted"
    assert window.meter.status.text() == "DFlash" and window.meter.reason.isHidden()


def test_the_meter_s_numbers_never_move(qtbot, window):
    before = {key: label.geometry() for key, label in window.meter.figures.items()}
    window.composer.set_text("Explain rainbows")
    window.do.set_mode("baseline")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert {key: label.geometry() for key, label in window.meter.figures.items()} == before


@OFFSCREEN_DIALOG
@pytest.mark.parametrize("width", [1_100, 700, 560, 460, 380])
def test_the_meter_s_parts_never_lie_on_each_other(qtbot, window, width):
    page = QWidget()
    qtbot.addWidget(page)
    strip = MeterStrip(page)
    page.show()
    strip.setGeometry(0, 0, width, strip.height())
    qtbot.wait(20)
    parts = [each.geometry() for each in (*strip.figures.values(), strip.status, strip.reason) if each.isVisible()]
    assert strip.figures["rate"].isVisible() and all(part.right() <= width for part in parts)
    assert all(one.right() < other.left() for one, other in pairwise(parts))


def test_why_speculation_is_off_is_one_click_away(qtbot, window, loader):
    loader.script.fallback = "The draft does not fit this model."
    load(qtbot, window.services.client)
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert not window.meter.reason.isHidden()
    qtbot.mouseClick(window.meter.reason, Qt.MouseButton.LeftButton)
    box = window.meter.findChild(QMessageBox)
    assert box.text() == "The draft does not fit this model."
    box.close()


@OFFSCREEN_DIALOG
def test_lookup_in_place_of_a_draft_is_not_called_off(window):
    words = "Lookup drafting: this model has no draft."
    window.meter.show_snapshot(MeterSnapshot(phase="done", mode="lookup", block_length=64, off_reason=words))
    window.meter.show_reason()
    box = window.meter.findChild(QMessageBox)
    assert (box.windowTitle(), box.text()) == ("Lookup instead of a draft", words)
    box.close()
