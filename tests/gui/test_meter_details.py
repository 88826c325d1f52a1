"""The meter's details: one key or click away, live, and the same in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage

from app.ui import theme
from app.ui.meter_details import MeterDetails
from engine import CostCurve
from tests.gui.conftest import load, wait_ready

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
COSTS = CostCurve((1, 2, 3, 4), (0.010, 0.012, 0.013, 0.014), (0.002, 0.002, 0.002, 0.002))


@pytest.fixture
def details(qtbot, window) -> MeterDetails:
    """The details beside a window whose pair has measured costs."""
    client = window.services.client
    client.info = replace(client.info, costs=COSTS)
    window.do.show_meter_details()
    found = window.findChild(MeterDetails)
    qtbot.waitExposed(found)
    return found


def ask(qtbot, window) -> None:
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)


def colours_of(widget) -> set[str]:
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return {QColor(image.pixel(x, y)).name() for x in range(image.width()) for y in range(image.height())}


def test_a_click_on_the_meter_opens_its_details_once(qtbot, window):
    for _ in range(2):
        qtbot.mouseClick(window.meter, Qt.MouseButton.LeftButton, pos=QPoint(4, 4))
    assert len(window.findChildren(MeterDetails)) == 1
    assert window.actions_by_id["meter_details"].shortcut().toString() == "Ctrl+I"


def test_the_figures_fill_while_an_answer_is_written(qtbot, window, details):
    assert details.state.text().startswith("No answer yet")
    ask(qtbot, window)
    assert details.state.text().startswith("On. The draft's next token was right")
    assert "cycles with a draft" in details.cycles.text()
    assert "slot 1: " in details.slots.accessibleDescription()
    assert "block 4: " in details.expected.accessibleDescription() and "(in use)" in details.expected.accessibleDescription()
    assert "4 slots: verify 14.0\u00a0ms, draft 2.0\u00a0ms" in details.costs.accessibleDescription()


def test_what_pays_is_drawn_in_the_accent_and_plain_steps_are_not(qtbot, window, details):
    ask(qtbot, window)
    accent = theme.current().accent.name()
    assert accent in colours_of(details.timeline) and accent in colours_of(details.expected)
    window.do.set_mode("baseline")
    ask(qtbot, window)
    assert details.state.text() == "Off. You chose plain decoding."
    assert accent not in colours_of(details.timeline) and accent not in colours_of(details.expected)


def test_another_chat_starts_afresh(qtbot, window, details):
    ask(qtbot, window)
    window.do.new_chat()
    assert details.state.text().startswith("No answer yet") and window.services.meter.log.cycles == []


def test_all_of_it_is_copied_as_text(qtbot, window, details):
    ask(qtbot, window)
    qtbot.mouseClick(details.copy_button, Qt.MouseButton.LeftButton)
    text = QGuiApplication.clipboard().text()
    figures = window.services.conversation.messages[-1].statistics
    assert f"{figures['tokens_per_cycle']:.2f} tokens per cycle" in text and "Scripted pair" in text
    assert text.count("\n") == 7 and "Cost of a pass on this machine: 1 slot: verify 10.0\u00a0ms" in text


def test_a_pair_without_a_draft_says_that_nothing_was_measured(qtbot, window, loader):
    loader.script.has_draft = False
    load(qtbot, window.services.client)
    window.do.show_meter_details()
    found = window.findChild(MeterDetails)
    assert found.state.text() == "Off. This model has no draft." or found.state.text().startswith("No answer yet")
    assert found.costs.accessibleDescription() == ""
    found.costs.grab()
