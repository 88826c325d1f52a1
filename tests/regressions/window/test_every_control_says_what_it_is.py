"""lmstudio-ai/lmstudio-bug-tracker#222, nomic-ai/gpt4all#386: a screen reader heard "button button" in most places."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QDialog, QWidget

import app.ui
from app.core.chat import Attachment
from tests.gui.conftest import wait_ready
from tests.gui.scenes import SCENES

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
Role = QAccessible.Role
CONTROLS = {Role.PushButton, Role.CheckBox, Role.RadioButton, Role.ComboBox, Role.EditableText, Role.SpinBox, Role.Slider,
            Role.Link, Role.List, Role.Tree, Role.Table, Role.ListItem, Role.TreeItem, Role.PageTab, Role.PageTabList,
            Role.ProgressBar, Role.ButtonMenu, Role.ButtonDropDown, Role.MenuItem, Role.Dialog, Role.Graphic}  # fmt: skip
EMPTY_WORDS = {"button", "checkbox", "list", "image", "icon", "text", "combobox", "label", "link", "unnamed", "none"}
# Qt's own parts of a control speak through the control: a combo box's list and line, a spin box's line, scroll bars.
OWN = re.compile(r"qt_|QComboBox|QTabBar|ScrollLeftButton|ScrollRightButton")


def parts(window: QWidget) -> Iterator[QAccessibleInterface]:
    """Every part of a window that a screen reader can come to."""
    waiting = [QAccessible.queryAccessibleInterface(window)]
    while waiting:
        part = waiting.pop()
        if part is None or not part.isValid() or part.state().invisible:
            continue
        yield part
        waiting += [part.child(index) for index in range(part.childCount())]


def is_own(part: QAccessibleInterface) -> bool:
    """Whether Qt made it inside one of its controls."""
    thing = part.object()
    return thing is not None and (OWN.match(thing.objectName()) is not None or OWN.match(type(thing.parent()).__name__) is not None)


def nameless(window: QWidget) -> list[str]:
    """What has no name, or none that says anything."""
    found = []
    for part in parts(window):
        name = part.text(QAccessible.Text.Name).strip()
        if part.role() not in CONTROLS or is_own(part):
            continue
        if not name or name.lower() in EMPTY_WORDS or "object Object" in name or "<" in name:
            thing = part.object()
            owner = f"{type(thing).__name__} of {type(thing.parent()).__name__}" if thing else ""
            found.append(f"{part.role().name} {owner} named {name!r}")
    return found


@pytest.fixture
def talked(qtbot, window):
    """A window with a chat, a comparison and all its parts on show."""
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.do.set_mode("compare")
    window.do.answer_again()
    qtbot.waitUntil(lambda: window.services.conversation.comparison.running is None and bool(window.compare.verdict.text()))
    wait_ready(qtbot, window.services.client)
    return window


def test_the_walk_itself_finds_a_nameless_button(qtbot, window):
    from PySide6.QtWidgets import QToolButton

    count = sum(1 for _part in parts(window))
    assert count > 30
    button = QToolButton(window)
    button.show()
    assert len(nameless(window)) == 1
    button.setAccessibleName("button")
    assert len(nameless(window)) == 1
    button.setAccessibleName("Close the note")
    assert nameless(window) == []


def test_every_part_of_the_main_window_has_a_name(qtbot, talked):
    talked.do.toggle_options()
    talked.do.find_in_chat()
    talked.composer.add(Attachment("notes.txt", "some text"))
    talked.transcript.answers[-1].body.set_text("<think>\nhm\n</think>\n\nA | b\n---|---\n1 | 2\n\n```\ncode\n```")
    talked.sidebar.search.setText("rainbows")  # with a text there is a button that clears it
    talked.banner.show_message("Something happened.", "Retry", lambda: None, second=("Copy details", lambda: None))
    for show in (talked.do.show_chat, talked.do.show_comparison, talked.do.new_chat):
        show()
        QCoreApplication.processEvents()
        assert nameless(talked) == []


@pytest.mark.parametrize("scene", list(SCENES))
def test_every_part_of_every_screen_has_a_name(qtbot, window, scene):
    shown = SCENES[scene](window)
    assert shown.isVisible() and nameless(shown) == []
    if shown is not window:
        shown.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_no_kind_of_dialog_is_missing_from_this_walk(qtbot, window):
    for module in pkgutil.walk_packages(app.ui.__path__, "app.ui."):
        importlib.import_module(module.name)
    ours = {kind.__name__ for kind in QDialog.__subclasses__() if kind.__module__.startswith("app.ui")}
    walked = set()
    for scene in SCENES.values():
        shown = scene(window)
        walked.add(type(shown).__name__)
        if shown is not window:
            shown.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert ours - walked == set() and len(ours) > 5


def test_tab_comes_to_every_control_of_the_main_window_and_back(qtbot, talked):
    talked.do.toggle_options()
    talked.do.find_in_chat()
    talked.composer.add(Attachment("notes.txt", "some text"))
    talked.do.show_chat()
    start = talked.composer.edit
    start.setFocus()
    reached, step = set(), start
    for _ in range(500):
        step = step.nextInFocusChain()
        reached.add(step)
        if step is start:
            break
    wanted = {
        widget
        for widget in talked.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    assert wanted and wanted <= reached
