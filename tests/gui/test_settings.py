"""Settings are checked, shown and applied at once; older ones are brought up to date, newer ones are never written over."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QComboBox

from app.services import settings as room
from app.services.settings import Settings, SettingsService, newest, parse
from app.ui import theme
from app.ui.settings_dialog import SettingsDialog
from tests.gui.conftest import wait_ready

# The offscreen platform says so of every window beside the first.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
VERSION_1 = {"temperature": 0.7, "max_tokens": 300, "mode": "compare", "text_size": 130, "pair": "starter", "check_updates": True,
             "learn_from_chats": True}  # as the first release wrote them  # fmt: skip


class Store:
    """Settings in a dict."""

    def __init__(self, **kept: Any):
        self.kept = kept

    def setting(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    def set_setting(self, key: str, value: Any) -> None:
        self.kept[key] = value


@pytest.mark.parametrize("values", [None, "text", [1], {"temperature": "warm"}, {"max_tokens": None}, {"text_size": {}}])
def test_damaged_settings_become_the_defaults(values):
    assert parse(values) == Settings()


@pytest.mark.parametrize("version", [0, -3, "two", None, 2.5])
def test_a_damaged_version_counts_as_the_first(version):
    assert parse({**VERSION_1, "version": version}) == parse(VERSION_1)


def test_settings_out_of_range_become_the_nearest_valid():
    checked = Settings(temperature=9.0, max_tokens=-5, mode="fast", text_size=107, language="xx", appearance="red").checked()  # type: ignore[arg-type]
    assert checked == Settings(temperature=2.0, max_tokens=1, mode="dflash", text_size=100)


def test_the_settings_of_the_first_version_are_all_kept(qtbot):
    service = SettingsService(Store(settings=VERSION_1))
    assert service.current == Settings(0.7, 300, "compare", 130, "starter", True, True)
    assert (service.current.language, service.current.appearance, service.current.notify) == ("system", "system", True)


def test_settings_are_brought_up_to_date_step_by_step(qtbot, monkeypatch):
    def halve(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "max_tokens": values["max_tokens"] // 2}

    def rename(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "text_size": values["max_tokens"]}

    monkeypatch.setattr(room, "MIGRATIONS", [*room.MIGRATIONS, halve, rename])
    store = Store(settings={"max_tokens": 300})
    service = SettingsService(store)
    assert (service.current.max_tokens, service.current.text_size) == (150, 150)
    service.update(temperature=0.5)
    assert store.kept["settings"]["version"] == newest() == 4
    again = SettingsService(store)
    assert again.current == service.current and again.current.max_tokens == 150  # no step is taken twice


def test_what_is_written_names_its_version(qtbot):
    store = Store()
    SettingsService(store).update(text_size=130)
    assert store.kept["settings"]["version"] == newest() and store.kept["settings"]["text_size"] == 130


def test_settings_of_a_newer_version_are_read_and_never_written_over(qtbot):
    newer = {"version": newest() + 1, "temperature": 0.5, "colour": "blue"}
    store = Store(settings=dict(newer))
    service = SettingsService(store)
    assert service.current == Settings(temperature=0.5)
    service.update(temperature=0.9)
    assert store.kept["settings"] == newer
    assert SettingsService(store).current == Settings(temperature=0.9)


@pytest.fixture
def dialog(window) -> SettingsDialog:
    """The open settings window."""
    window.do.show_settings()
    return window.findChild(SettingsDialog)


def choose(box: QComboBox, value: object) -> None:
    """As the user would."""
    box.setCurrentIndex(box.findData(value))
    box.activated.emit(box.currentIndex())


def test_the_settings_window_changes_the_next_request(qtbot, window, loader, dialog):
    dialog.answers.temperature.setValue(0.8)
    dialog.answers.max_tokens.setValue(7)
    choose(dialog.answers.mode, "baseline")
    dialog.close()
    assert window.composer.modes.button("baseline").isChecked()
    window.composer.set_text("Hello")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    request = loader.engines[-1].requests[-1]
    assert (request.temperature, request.max_tokens, request.mode) == (0.8, 7, "baseline")


def test_new_chats_begin_with_the_preset_chosen_in_the_settings(qtbot, window, loader, dialog):
    choose(dialog.answers.preset, "creative")
    window.do.new_chat()
    window.composer.set_text("Hello")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert (loader.engines[-1].requests[-1].temperature, loader.engines[-1].requests[-1].min_p) == (1.0, 0.05)
    choose(dialog.answers.preset, "")
    assert window.services.settings.current.preset == ""


def test_there_is_one_settings_window_with_six_pages_at_most(window, dialog):
    window.do.show_settings()
    assert window.findChildren(SettingsDialog) == [dialog]
    assert 1 < dialog.pages.count() <= 6


def test_a_change_made_elsewhere_is_shown(window, dialog):
    window.do.set_mode("compare")
    window.do.change_text_size(1)
    window.services.settings.update(temperature=0.3, learn_from_chats=True, language="de")
    assert dialog.answers.mode.currentData() == "compare" and dialog.general.text_size.currentData() == 115
    assert dialog.answers.temperature.value() == 0.3 and dialog.privacy.learn.isChecked()
    assert dialog.general.language.currentText() == "Deutsch"


def test_where_nothing_is_said_of_learning_there_is_no_gap(window, dialog):
    page = dialog.privacy
    assert page.learning.text() == "" and not page._form.isRowVisible(page.learning)
    window.services.settings.update(learn_from_chats=True)
    assert page.learning.text() != "" and page._form.isRowVisible(page.learning)


def test_light_and_dark_change_the_colours_at_once(qtbot, window, dialog):
    before = QApplication.palette().color(QPalette.ColorRole.Window)
    choose(dialog.general.appearance, "dark")
    assert theme.current().dark
    qtbot.waitUntil(lambda: window.composer.palette().color(QPalette.ColorRole.Base).lightness() < 80)
    choose(dialog.general.appearance, "light")
    qtbot.waitUntil(lambda: window.composer.palette().color(QPalette.ColorRole.Base).lightness() > 200)
    choose(dialog.general.appearance, "dark")
    choose(dialog.general.appearance, "system")
    assert QApplication.palette().color(QPalette.ColorRole.Window) == before


def test_standard_settings_keep_what_the_user_agreed_to(window, dialog):
    window.services.settings.update(temperature=1.0, text_size=150, check_updates=True, language="de", notify=False)
    dialog.advanced._reset()
    current = window.services.settings.current
    assert (current.temperature, current.text_size, current.notify) == (0.0, 100, True)
    assert current.check_updates and current.language == "de"
