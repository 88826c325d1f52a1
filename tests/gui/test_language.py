"""The whole program speaks one language: our words, Qt's own buttons, and the way numbers are typed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator
from PySide6.QtWidgets import QDialogButtonBox, QDoubleSpinBox

from app.core.model_rows import Shelf, model_rows
from app.core.words import tr
from app.language import speak
from app.main import Options, Program
from app.ui.settings_dialog import SettingsDialog
from engine.models import list_pairs
from tests.gui.conftest import delete_later, wait_ready


@pytest.fixture
def spoken(qapp) -> Iterator[None]:
    """Leaves the process in English."""
    yield
    speak("en", qapp)


def close_button() -> str:
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    return box.button(QDialogButtonBox.StandardButton.Close).text().replace("&", "")


def test_our_words_qt_s_words_and_numbers_change_together_and_back(qapp, spoken):
    assert speak("de", qapp) == "de"
    box = QDoubleSpinBox(decimals=1, value=0.5)
    assert tr("Close") == close_button() == "Schließen" and box.text() == "0,5"
    assert speak("en", qapp) == "en"
    assert tr("Close") == close_button() == "Close" and QDoubleSpinBox(decimals=1, value=0.5).text() == "0.5"
    assert QLocale().name() == "en_US"


def test_what_the_catalog_says_of_models_is_said_in_the_language_of_the_window(qtbot, qapp, spoken, window):
    written = {pair.id: pair.description for pair in list_pairs()}
    speak("de", qapp)
    said = {pair.id: pair.description for pair in window.model_manager.pairs()}
    assert said.keys() == written.keys() and not [key for key in said if said[key] == written[key]]
    rows = model_rows(Shelf(tuple(list_pairs())), [])
    assert {row.id: row.about for row in rows}["starter"] == said["starter"]


def test_speaking_twice_leaves_one_translator(qapp, spoken):
    for _ in range(3):
        speak("de", qapp)
    assert len(qapp.findChildren(QTranslator, "qtbase")) == 1


def test_the_c_library_s_numbers_are_left_alone(qapp, spoken):
    import locale

    speak("de", qapp)
    assert locale.localeconv()["decimal_point"] == "." and float("0.5") == 0.5


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_the_language_chosen_in_the_settings_is_spoken_from_the_next_start(qapp, qtbot, tmp_path, loader, spoken):
    def start() -> Program:
        program = Program(qapp, tmp_path, Options(pair="scripted"), loader)
        program.window.show()
        wait_ready(qtbot, program.services.client)
        return program

    first = start()
    first.window.do.show_settings()
    box = first.window.findChild(SettingsDialog).general.language
    box.setCurrentIndex(box.findData("de"))
    box.activated.emit(box.currentIndex())
    assert first.window.actions_by_id["new_chat"].text() == "New Chat"
    first.quit()
    second = start()
    try:
        assert second.window.actions_by_id["new_chat"].text() == "Neuer Chat"
        second.window.composer.set_text("Warum?")
        second.window.do.send()
        wait_ready(qtbot, second.services.client)
        assert second.window.meter.figures["rate"].text().endswith(" Tok/s")
    finally:
        second.quit()
        for program in (first, second):
            delete_later(program.window)
            delete_later(program.services)
        QCoreApplication.processEvents()
