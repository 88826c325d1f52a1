"""What users of a Mac expect of every program: roles in the menus, the usual keys, a window that comes back in sight."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QAction, QColor, QGuiApplication, QKeySequence, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QDialog, QLineEdit, QPushButton, QRadioButton, QSpinBox, QWidget

from app.commands import COMMANDS, MENUS
from app.ui import theme
from app.ui.deleted_dialog import DeletedDialog
from app.ui.settings_dialog import SettingsDialog
from tests.gui.conftest import wait_ready

Role = QAction.MenuRole


def test_settings_about_and_quit_have_their_places_in_the_app_menu(window):
    roles = {name: window.actions_by_id[name].menuRole() for name in ("settings", "about", "quit", "look_for_updates")}
    assert roles == {"settings": Role.PreferencesRole, "about": Role.AboutRole, "quit": Role.QuitRole,
                     "look_for_updates": Role.ApplicationSpecificRole}  # fmt: skip
    others = [action.menuRole() for name, action in window.actions_by_id.items() if name not in roles]
    assert set(others) == {Role.NoRole}, "Qt guesses roles by their words unless told that there is none"


def test_every_command_is_in_a_menu_and_the_menus_are_the_usual_ones(window):
    bar = window._shared_bar
    menus = [action.menu() for action in bar.actions()]
    assert tuple(menu.title() for menu in menus) == MENUS
    assert {action for menu in menus for action in menu.actions() if not action.isSeparator()} == set(window.actions_by_id.values())
    assert len(COMMANDS) == len(window.actions_by_id)


@pytest.mark.parametrize(
    ("command", "keys"),
    [("settings", "Ctrl+,"), ("new_chat", "Ctrl+N"), ("close_window", "Ctrl+W"), ("quit", "Ctrl+Q"), ("stop", "Ctrl+."),
     ("send", "Ctrl+Return"), ("find_chats", "Ctrl+Shift+F"), ("minimise", "Ctrl+M")],
)  # fmt: skip
def test_the_usual_keys_do_the_usual_things(window, command, keys):
    assert QKeySequence(keys) in window.actions_by_id[command].shortcuts()


def test_a_window_left_on_a_screen_that_is_gone_comes_back_on_one_that_is_there(make_services, make_window):
    first = make_window(make_services())
    first.resize(900, 640)
    first.move(20_000, 20_000)
    first.retire()
    first.services.shutdown()
    second = make_window(make_services())
    screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    assert any(screen.contains(second.pos() + QPoint(40, 10)) for screen in screens)


def test_the_size_of_the_window_is_kept(make_services, make_window):
    first = make_window(make_services())
    first.resize(790, 560)
    first.retire()
    first.services.shutdown()
    assert make_window(make_services()).size() == QSize(790, 560)


def test_a_line_of_an_answer_has_70_to_80_characters_however_wide_the_window(qtbot, window, loader):
    loader.script.text, loader.script.tokens = "Plain words of an answer that goes on for a while to fill many lines. ", 400
    window.resize(1700, 800)
    window.composer.set_text("Long story")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    prose = window.transcript.answers[-1].body.widgets[0]
    qtbot.waitUntil(lambda: prose.width() > 400)
    layout = prose.document().begin().layout()
    lengths = [layout.lineAt(index).textLength() for index in range(layout.lineCount() - 1)]
    assert len(lengths) > 5 and 66 <= max(lengths) <= 84 and 62 <= sum(lengths) / len(lengths) <= 80
    assert 70 <= prose.width() / prose.fontMetrics().averageCharWidth() <= 80


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_close_closes_the_window_in_front_and_not_the_one_behind(qtbot, window):
    window.do.show_settings()
    dialog = window.findChild(SettingsDialog)
    qtbot.waitUntil(dialog.isActiveWindow)
    window.do.close_window()
    assert window.isVisible() and not dialog.isVisible()


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")
def test_minimise_takes_the_window_in_front(qtbot, hub, window, manager):
    qtbot.waitUntil(manager.isActiveWindow)
    window.do.minimise()
    assert manager.isMinimized() and not window.isMinimized()
    window.do.show_settings()
    qtbot.waitUntil(window.findChild(SettingsDialog).isActiveWindow)
    window.do.minimise()
    assert window.isMinimized(), "a dialog has no place in the Dock"


def test_the_menus_change_nothing_behind_a_dialog_that_waits(qtbot, window):
    window.composer.set_text("Why?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.actions_by_id["show_deleted"].trigger()
    dialog = window.findChild(DeletedDialog)
    for name in ("delete_chat", "new_chat", "palette", "show_deleted"):
        window.actions_by_id[name].trigger()
    assert [type(each) for each in window.findChildren(QDialog)] == [DeletedDialog]
    assert window.services.conversation.chat is not None
    window.actions_by_id["close_window"].trigger()
    assert not dialog.isVisible() and window.isVisible()


def contrast(one: QColor, other: QColor) -> float:
    """WCAG's contrast ratio."""

    def luminance(colour: QColor) -> float:
        parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.getRgbF()[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("base", "text"), [("#ffffff", "#000000"), ("#1e1e20", "#ffffff")], ids=["light", "dark"])
def test_every_colour_of_a_text_can_be_read(base, text):
    ground = QColor(base)
    for more, least in ((False, 4.5), (True, 7.0)):
        colours = theme._from_colours(ground.rgb(), QColor(text).rgb(), more)
        assert contrast(colours.quiet, ground) >= least and contrast(colours.text, ground) >= 7
        for colour in (colours.accent, colours.warning, colours.error):
            assert contrast(colour, ground) >= 4.5
        assert contrast(colours.warning_back, colours.text) >= 7
    assert contrast(theme._from_colours(ground.rgb(), QColor(text).rgb(), True).line, ground) >= 3


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_selected_can_be_read_and_the_ring_of_the_focus_be_seen(dark):
    palette = theme._palette(dark)
    selected = palette.color(QPalette.ColorRole.Highlight)
    assert contrast(selected, palette.color(QPalette.ColorRole.HighlightedText)) >= 4.5
    for ground in (QPalette.ColorRole.Window, QPalette.ColorRole.Base):
        assert contrast(selected, palette.color(ground)) >= 3


def test_the_lines_between_the_parts_follow_the_look(qtbot, window):
    def colours() -> list[QColor]:
        return [rule.palette().color(rule.foregroundRole()) for rule in window._rules]

    def shows(dark: bool) -> bool:
        return theme.current().dark is dark and colours() == [theme.current().line] * 2

    try:
        for look in ("dark", "light"):
            window.services.settings.update(appearance=look)
            qtbot.waitUntil(partial(shows, look == "dark"), timeout=20_000)
    finally:
        window.services.settings.update(appearance="system")


def test_on_a_wide_screen_the_message_field_stays_as_narrow_as_can_be_read_and_in_the_middle(qtbot, window):
    window.resize(2400, 900)
    chat = window.composer.parentWidget()
    qtbot.waitUntil(lambda: chat.width() > 1_800, timeout=20_000)
    limit = window.composer.fontMetrics().averageCharWidth() * 150
    left, right = window.composer.x(), chat.width() - window.composer.geometry().right() - 1
    assert window.composer.width() <= limit + 1 and abs(left - right) <= 2


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("kind", [QCheckBox, QRadioButton, QSpinBox, QComboBox, QLineEdit, QPushButton])
def test_the_outline_of_every_control_can_be_seen_in_both_looks(qtbot, window, look, kind):
    window.services.settings.update(appearance=look)
    page = QWidget(window.centralWidget())
    page.setAutoFillBackground(True)
    control = kind(page)
    control.setGeometry(20, 20, 160, 32)
    page.setGeometry(0, 0, 200, 72)
    page.show()
    qtbot.waitUntil(lambda: page.palette().window().color() == QApplication.palette().window().color(), timeout=20_000)
    try:
        picture, row = page.grab().toImage(), control.geometry().center().y()
        ground = picture.pixelColor(2, 2)
        edge = [picture.pixelColor(x, row) for x in range(18, 24)]
        assert max(contrast(pixel, ground) for pixel in edge) >= 3
    finally:
        window.services.settings.update(appearance="system")
        page.deleteLater()


def test_a_double_click_on_send_sends_and_does_not_stop(qtbot, window, loader, monkeypatch):
    monkeypatch.setattr("app.ui.composer.QApplication.doubleClickInterval", lambda: 60_000)
    loader.script.rate, loader.script.tokens = 100.0, 1_000
    button = window.composer.button
    window.composer.set_text("Why?")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "Stop"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert window.services.client.busy and button.text() == "Stop"
    monkeypatch.setattr("app.ui.composer.QApplication.doubleClickInterval", lambda: 0)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[-1].state == "stopped"
