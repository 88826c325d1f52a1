"""The pane with a chat's options: what its fields change and refuse, presets, room for it, and its state at the next start."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QInputDialog

from app.core.options import RANGES
from app.ui.settings_dialog import SettingsDialog
from tests.gui.conftest import load, wait_ready

DIALOG = pytest.mark.qt_log_ignore("This plugin does not support (propagateSizeHints|raise)")


@pytest.fixture
def pane(window):
    window.resize(1200, 800)
    window.do.toggle_options()
    return window.options


def test_what_is_changed_in_the_pane_is_asked_for(qtbot, window, pane, loader):
    panel = pane.panel
    panel.numbers["temperature"].setValue(0.8)
    panel.numbers["top_k"].setValue(30)
    panel.drop_oldest.setChecked(True)
    panel.seed.setValue(7)
    qtbot.keyClicks(panel.system, "Be brief.")
    qtbot.waitUntil(lambda: window.services.conversation.options.current.system == "Be brief.", timeout=20_000)
    window.composer.set_text("Why?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    request = loader.engines[-1].requests[-1]
    assert (request.temperature, request.top_k, request.seed, request.overflow) == (0.8, 30, 7, "drop_oldest")
    assert request.messages[0].content == "Be brief."
    chat = window.services.store.chats()[0]
    assert chat.options["temperature"] == 0.8


def test_the_fields_take_nothing_out_of_range(qtbot, pane):
    for name, field in pane.panel.numbers.items():
        lowest, highest = RANGES[name]
        assert (field.minimum(), field.maximum()) == (lowest, highest)
        field.setFocus()
        field.selectAll()
        qtbot.keyClicks(field, "99999999")
        field.interpretText()
        assert lowest <= field.value() <= highest, name


def test_each_chat_shows_its_own_values(qtbot, window, pane):
    pane.panel.numbers["temperature"].setValue(0.8)
    window.composer.set_text("Why?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.chat.id
    window.do.new_chat()
    assert pane.panel.numbers["temperature"].value() == 0.0
    window.do.open_chat(first)
    assert pane.panel.numbers["temperature"].value() == 0.8
    pane.panel.reset.click()
    assert pane.panel.numbers["temperature"].value() == 0.0


@DIALOG
def test_presets_are_chosen_saved_renamed_and_deleted_from_the_pane(qtbot, window, pane):
    panel, options = pane.panel, window.services.conversation.options
    panel.preset.setCurrentIndex(panel.preset.findText("Creative"))
    panel.preset.activated.emit(panel.preset.currentIndex())
    assert options.current.temperature == 1.0 and not panel.delete.isEnabled()
    panel.numbers["min_p"].setValue(0.2)
    assert panel.preset.currentText() == "Own values"

    def answer(name: str) -> None:
        dialog = window.findChild(QInputDialog)
        dialog.setTextValue(name)
        dialog.accept()
        qtbot.waitUntil(lambda: window.findChild(QInputDialog) is None, timeout=20_000)

    panel.save.trigger()
    answer("Mine")
    assert panel.preset.currentText() == "Mine" and panel.delete.isEnabled()
    panel.rename.trigger()
    answer("Ours")
    assert panel.preset.currentText() == "Ours"
    panel.save.trigger()
    answer("  ")
    assert "needs a name" in window.banner.text
    panel.delete.trigger()
    assert panel.preset.currentText() == "Own values" and options.current.min_p == 0.2


def test_thinking_can_be_chosen_only_where_the_model_has_the_switch(qtbot, window, pane, loader):
    assert not pane.panel.thinking.isEnabled()
    loader.script.thinking_switch = True
    load(qtbot, window.services.client)
    assert pane.panel.thinking.isEnabled()
    pane.panel.thinking.setCurrentIndex(pane.panel.thinking.findText("Off"))
    pane.panel.thinking.activated.emit(2)
    window.composer.set_text("Why?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert loader.engines[-1].requests[-1].thinking is False


def test_in_a_narrow_window_the_list_of_chats_gives_way_and_comes_back(qtbot, window, pane):
    assert not window.sidebar.isHidden()
    window.resize(820, 700)
    qtbot.waitUntil(lambda: window.sidebar.isHidden(), timeout=20_000)
    chat, panel = window.splitter.widget(1), pane.panel
    qtbot.waitUntil(lambda: chat.geometry().right() < panel.x() and panel.geometry().right() < 820, timeout=20_000)
    window.do.toggle_options()
    assert not window.sidebar.isHidden() and window.composer.edit.hasFocus()


def restart(window, make_services, make_window):
    window.retire()
    assert window.services.shutdown(20.0)
    return make_window(make_services())


def test_panes_are_as_wide_again_as_they_were(qtbot, window, make_services, make_window):
    window.resize(780, 560)  # the screen here is no larger
    window.splitter.setSizes([250, 530, 0])
    qtbot.waitUntil(lambda: window.splitter.sizes()[0] == 250, timeout=20_000)
    again = restart(window, make_services, make_window)
    qtbot.waitUntil(lambda: again.splitter.sizes()[0] == 250, timeout=20_000)


def test_the_pane_is_open_again_and_the_hidden_list_of_chats_hidden(qtbot, window, pane, make_services, make_window):
    window.do.toggle_sidebar()
    again = restart(window, make_services, make_window)
    assert not again.options.panel.isHidden() and again.options.button.isChecked() and again.sidebar.isHidden()
    again.do.toggle_options()
    assert again.options.panel.isHidden() and again.sidebar.isHidden()


def test_the_panes_of_a_comparison_keep_their_widths(qtbot, window, make_services, make_window):
    window.resize(780, 560)
    window.do.show_comparison()
    window.compare.splitter.setSizes([200, 340])
    sizes = window.compare.splitter.sizes()
    again = restart(window, make_services, make_window)
    again.resize(780, 560)
    again.do.show_comparison()
    qtbot.waitUntil(lambda: again.compare.splitter.sizes() == sizes, timeout=20_000)


@DIALOG
def test_the_settings_choose_what_new_chats_begin_with(qtbot, window):
    window.do.show_settings()
    dialog = window.findChild(SettingsDialog)
    box = dialog.answers.preset
    box.setCurrentIndex(box.findText("Creative"))
    box.activated.emit(box.currentIndex())
    assert window.services.conversation.options.current.temperature == 1.0
    dialog.close()


def test_the_pane_covers_nothing_in_the_narrowest_window(qtbot, window):
    window.resize(window.minimumSize())
    before, chat, panel = window.minimumWidth(), window.splitter.widget(1), window.options.panel
    window.options.set_open(True)
    qtbot.waitUntil(lambda: chat.geometry().right() < panel.geometry().left(), timeout=20_000)
    assert panel.geometry().right() <= window.splitter.rect().right()
    window.options.set_open(False)
    assert window.minimumWidth() == before


def test_instructions_that_are_too_long_say_so_and_are_not_taken_away_while_they_are_shortened(qtbot, window, pane):
    panel, options = pane.panel, window.services.conversation.options
    panel.system.setPlainText("x" * 100_000 + "beyond")
    panel.commit()
    assert options.current.system == "x" * 100_000
    assert panel.too_long.isVisibleTo(panel) and "100,000 of these 100,006" in panel.too_long.text()
    assert panel.system.toPlainText().endswith("beyond")
    panel.system.setPlainText("x" * 99_994 + "within")
    assert not panel.too_long.isVisibleTo(panel)
    panel.commit()
    assert options.current.system.endswith("within")
