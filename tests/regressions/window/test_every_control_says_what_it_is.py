"""lmstudio-ai/lmstudio-bug-tracker#222, nomic-ai/gpt4all#386: a screen reader heard "button button" in most places."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QUrl
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication, QDialog, QWidget

import app.ui
from app.core.chat import Attachment
from app.core.updates import Release
from app.ui.context_meter import ContextUse
from app.ui.crash_dialog import CrashDialog
from app.ui.deleted_dialog import DeletedDialog
from app.ui.links import ask_to_open
from app.ui.update_dialog import UpdateDialog
from tests.gui.conftest import wait_ready

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
Role = QAccessible.Role
CONTROLS = {Role.PushButton, Role.CheckBox, Role.RadioButton, Role.ComboBox, Role.EditableText, Role.SpinBox, Role.Slider,
            Role.Link, Role.List, Role.Tree, Role.Table, Role.ListItem, Role.TreeItem, Role.PageTab, Role.PageTabList,
            Role.ProgressBar, Role.ButtonMenu, Role.ButtonDropDown, Role.MenuItem, Role.Dialog, Role.Graphic}  # fmt: skip
EMPTY_WORDS = {"button", "checkbox", "list", "image", "icon", "text", "combobox", "label", "link", "unnamed", "none"}
# Qt's own parts of a control speak through the control: a combo box's list and line, a spin box's line, scroll bars.
OWN = re.compile(r"qt_|QComboBox|QTabBar|ScrollLeftButton|ScrollRightButton")
RELEASE = Release("9.9.9", "14.0", "2026-01-01", "Notes", "https://slipstream.example", "0" * 64)


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


def opened(window, before: set[QWidget]) -> list[QWidget]:
    """The windows that came since ``before``."""
    QCoreApplication.processEvents()
    return [widget for widget in QApplication.topLevelWidgets() if widget.isVisible() and widget not in before]


def openers(window, tmp_path: Path) -> dict[str, Callable[[], object]]:
    """Everything that opens a window beside the main one, by name."""
    do = window.do
    crash = tmp_path / "crash-previous.log"
    crash.write_text("Fatal Python error: Aborted\n")
    found: dict[str, Callable[[], object]] = {
        "settings": do.show_settings,
        "about": do.show_about,
        "meter details": do.show_meter_details,
        "comparisons": do.show_comparisons,
        "load report": do.show_load_report,
        "models": do.show_models,
        "deleted chats": lambda: DeletedDialog(window.services.shelf, window).open(),
        "crash": lambda: CrashDialog(crash, window).open(),
        "update": lambda: UpdateDialog(RELEASE, window).open(),
        "forget": do.forget_learned,
        "tour": do.show_tour,
        "palette": do.show_palette,
        "open a link": lambda: ask_to_open(QUrl("https://example.org"), window),
        "answer details": lambda: window.transcript.answers[-1].show_details(),
        "context": lambda: show_context(window),
    }
    return found


def show_context(window) -> None:
    window.composer.context.show_use(ContextUse(5, 100, [("Chat", 5)]))
    window.composer.context.show_details()


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


@pytest.mark.parametrize("name", ["settings", "about", "meter details", "comparisons", "load report", "models", "deleted chats",
                                  "crash", "update", "forget", "tour", "palette", "open a link", "answer details",
                                  "context"])  # fmt: skip
def test_every_part_of_every_other_window_has_a_name(qtbot, talked, tmp_path, name):
    before = set(QApplication.topLevelWidgets())
    openers(talked, tmp_path)[name]()
    windows = opened(talked, before) if name != "tour" else [talked.first_run.tour]
    assert windows and all(window.isVisible() for window in windows)
    for window in windows:
        pages = getattr(window, "pages", None)
        for page in range(pages.count() if pages is not None else 1):
            if pages is not None:
                pages.setCurrentIndex(page)
                QCoreApplication.processEvents()
            assert nameless(window) == []
        window.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_no_kind_of_dialog_is_missing_from_this_walk(talked, tmp_path):
    for module in pkgutil.walk_packages(app.ui.__path__, "app.ui."):
        importlib.import_module(module.name)
    ours = {kind.__name__ for kind in QDialog.__subclasses__() if kind.__module__.startswith("app.ui")}
    walked = set()
    for run in openers(talked, tmp_path).values():
        before = set(QApplication.topLevelWidgets())
        run()
        walked |= {type(window).__name__ for window in opened(talked, before)}
        for window in opened(talked, before):
            window.close()
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
