"""Everything with the keys: the focus can be seen wherever Tab leads, and each pane can be come to and left."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from app.core.chat import Attachment
from tests.gui.conftest import wait_ready


def picture(window, control: QWidget) -> QImage:
    rect = control.rect().translated(control.mapTo(window, control.rect().topLeft()))
    return window.grab(rect.adjusted(-3, -3, 3, 3)).toImage()


def test_the_focus_can_be_seen_on_every_control_that_tab_comes_to(qtbot, window):
    window.resize(1200, 800)
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    answer = window.transcript.answers[-1]
    answer.body.set_text("<think>\nhm\n</think>\n\nA [link](https://example.org) and\n\n```\ncode\n```")
    window.composer.add(Attachment("a.txt", "x"))
    window.do.toggle_options()
    window.do.find_in_chat()
    window.banner.show_message("Something happened.", "Retry", lambda: None)
    window.activateWindow()
    qtbot.waitUntil(lambda: window.isActiveWindow() and not answer.body.widgets[1].visibleRegion().isEmpty(), timeout=20_000)
    unseen, seen = [], set()
    control = window.composer.edit
    control.setFocus()
    while control not in seen:
        seen.add(control)
        focused = picture(window, control)
        for _link in range(3):  # Tab goes through the links of a text first
            if QApplication.focusWidget() is control:
                qtbot.keyClick(control, Qt.Key.Key_Tab)
        # The transcript itself has no mark: what it shows is what it is about.
        if picture(window, control) == focused and control is not window.transcript and not control.visibleRegion().isEmpty():
            unseen.append(f"{type(control).__name__} {control.accessibleName()}")
        control = QApplication.focusWidget()
    assert control is window.composer.edit and unseen == [] and len(seen) > 40


def test_the_mark_comes_with_tab_goes_with_it_and_stays_away_from_the_mouse(qtbot, window):
    window.activateWindow()
    edit, attach = window.composer.edit, window.composer.attach
    edit.setFocus()
    plain = picture(window, attach)
    qtbot.keyClick(edit, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is attach and picture(window, attach) != plain
    qtbot.keyClick(attach, Qt.Key.Key_Backtab)
    assert edit.hasFocus() and picture(window, attach) == plain
    qtbot.mouseClick(edit.viewport(), Qt.MouseButton.LeftButton)
    attach.setFocus(Qt.FocusReason.MouseFocusReason)
    assert window.focus_ring._ring is None


def test_tab_leaves_every_text_field(qtbot, window):
    window.resize(1200, 800)
    window.do.toggle_options()
    window.activateWindow()
    for field in (window.composer.edit, window.options.panel.system, window.sidebar.search):
        field.setFocus()
        qtbot.keyClick(field, Qt.Key.Key_Tab)
        assert not field.hasFocus()
