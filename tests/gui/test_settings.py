"""Settings are checked, shown and applied at once; chats are grouped by the calendar."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from PySide6.QtWidgets import QComboBox

from app.services.settings import Settings, parse
from app.ui.settings_dialog import SettingsDialog
from app.ui.sidebar import day_group
from tests.gui.conftest import wait_ready


@pytest.mark.parametrize("values", [None, "text", [1], {"temperature": "warm"}, {"max_tokens": None}, {"text_size": {}}])
def test_damaged_settings_become_the_defaults(values):
    assert parse(values) == Settings()


def test_settings_out_of_range_become_the_nearest_valid():
    checked = Settings(temperature=9.0, max_tokens=-5, mode="fast", text_size=107).checked()  # type: ignore[arg-type]
    assert checked == Settings(temperature=2.0, max_tokens=1, mode="dflash", text_size=100)


def test_settings_of_a_newer_version_keep_what_is_known():
    assert parse({"temperature": 0.5, "colour": "blue"}) == Settings(temperature=0.5)


@pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
def test_the_settings_window_changes_the_next_request(qtbot, window, loader):
    window.do.show_settings()
    dialog = window.findChild(SettingsDialog)
    dialog.temperature.setValue(0.8)
    dialog.max_tokens.setValue(7)
    box: QComboBox = dialog.mode
    box.setCurrentIndex(box.findData("baseline"))
    box.activated.emit(box.currentIndex())
    dialog.close()
    assert window.composer.modes.button("baseline").isChecked()
    window.composer.set_text("Hello")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    request = loader.engines[-1].requests[-1]
    assert (request.temperature, request.max_tokens, request.mode) == (0.8, 7, "baseline")


@pytest.mark.parametrize(("hours_ago", "group"), [(0, "Today"), (13, "Yesterday"), (37, "Earlier"), (-24, "Today")])
def test_chats_are_grouped_by_the_local_calendar(hours_ago, group):
    noon = datetime(2026, 3, 5, 12, 0)
    assert day_group(noon.timestamp() - hours_ago * 3600, date(2026, 3, 5)) == group
