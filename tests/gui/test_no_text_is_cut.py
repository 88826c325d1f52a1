"""In no language and on no screen is a text longer than its place, even in the smallest window and with the largest text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QToolButton, QWidget

from app.core.words import use_language
from app.ui.labels import ElidedLabel
from tests.gui.conftest import load
from tests.gui.scenes import SCENES

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
LOCALE = Path(__file__).parents[2] / "resources" / "locale"


@pytest.fixture
def language(request) -> Iterator[str]:
    use_language(request.param, LOCALE)
    yield request.param
    use_language("en", LOCALE)


def is_cut(widget: QWidget) -> bool:
    """Whether a text is wider or higher than what it is shown in."""
    if isinstance(widget, ElidedLabel):
        return False  # says so itself, and has all of it in its tool tip
    if isinstance(widget, QLabel):
        if not widget.text() or widget.textFormat() is Qt.TextFormat.RichText:
            return False
        needed = widget.heightForWidth(widget.width()) if widget.wordWrap() else widget.sizeHint().height()
        wide = not widget.wordWrap() and widget.sizeHint().width() > widget.width() + 1
        return wide or needed > widget.height() + 1
    if isinstance(widget, QToolButton) and widget.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonIconOnly:
        return False
    return widget.sizeHint().width() > widget.width() + 1 or widget.sizeHint().height() > widget.height() + 2


def cut(window: QWidget) -> list[str]:
    """The texts that are cut, with how wide they are and how wide their place is."""
    found = []
    for kind in (QLabel, QAbstractButton, QComboBox):
        for widget in window.findChildren(kind):
            if widget.isVisible() and not widget.objectName().startswith("qt_") and is_cut(widget):
                text = widget.currentText() if isinstance(widget, QComboBox) else widget.text()
                found.append(f"{type(widget).__name__} {text!r}: {widget.sizeHint().width()} in {widget.width()}")
    return found


# German is the longer of both; English takes its turn in the long run.
@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("scene", list(SCENES))
def test_nothing_is_cut_in_the_smallest_window(qtbot, language, make_services, make_window, loader, scene):
    loader.script.rate = 900.0
    services = make_services()
    window = make_window(services)
    load(qtbot, services.client)
    window.resize(window.minimumSize())
    shown = SCENES[scene](window)
    for _ in range(20):  # what arrives from a thread moves its neighbours a moment later
        QApplication.processEvents()
        if not cut(shown):
            break
        qtbot.wait(50)
    assert cut(shown) == []
    if shown is not window:
        shown.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_check_itself_finds_a_cut_text(qtbot, window):
    label = QLabel("A text that is much longer than its place", window)
    label.setGeometry(0, 0, 40, 20)
    label.show()
    assert len(cut(window)) == 1


@pytest.mark.parametrize("server", ["", "http://192.168.100.100:65535/v1"])
@pytest.mark.parametrize("language", ["de", "en"], indirect=True)
def test_the_meter_s_figures_keep_apart_in_the_smallest_window(qtbot, language, server, make_services, make_window):
    window = make_window(make_services())
    window.meter.show_server(server)
    for width in (window.minimumWidth(), 1_200):
        window.resize(width, 600)
        qtbot.wait(20)
        parts = (window.meter.server, window.meter.ribbon, *window.meter.figures.values(), window.meter.status)
        shown = [part for part in parts if part.isVisible()]
        assert all(left.geometry().right() < right.x() - 4 for left, right in pairwise(shown))
        assert window.meter.layout().minimumSize().width() <= window.meter.width()
    assert window.meter.figures["first"].isVisible()
