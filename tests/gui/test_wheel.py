"""Scrolling over a field changes nothing in it: only a field that has the focus takes the wheel."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QFileDialog, QWidget

from app.core.blocks import Block
from app.ui.code_block import TALLEST, CodeBlock
from app.ui.settings_dialog import SettingsDialog


def scroll(field: QWidget) -> None:
    """Turns the wheel down a notch with the pointer on ``field``."""
    QApplication.processEvents()  # so that everything is in its place
    top = field.window()
    place = QPointF(field.mapTo(top, field.rect().center()))
    QTest.wheelEvent(top.windowHandle(), place, QPoint(0, -120))
    QApplication.processEvents()


def value(field: QWidget):
    return field.currentIndex() if isinstance(field, QComboBox) else field.text()


def fields(page: QWidget) -> list[QWidget]:
    return [each for kind in (QComboBox, QAbstractSpinBox) for each in page.findChildren(kind) if each.isVisible()]


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")
def test_scrolling_a_page_of_options_or_settings_changes_none_of_them(qtbot, window, hub, manager, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_arguments: "")  # the last row of the model menu asks for one
    window.resize(1200, 800)
    window.do.toggle_options()
    window.do.show_settings()
    settings = window.findChild(SettingsDialog)
    settings.pages.setCurrentIndex(1)
    window.stack.setCurrentWidget(window.compare)
    window.composer.setFocus()
    found = [*fields(window), *fields(settings), *fields(manager)]
    assert len(found) > 15
    before = [value(field) for field in found]
    for field in found:
        scroll(field)
    assert [value(field) for field in found] == before


def test_a_field_that_has_the_focus_takes_the_wheel(qtbot, window):
    window.do.toggle_options()
    field = window.options.panel.numbers["top_k"]
    qtbot.waitUntil(window.isActiveWindow)
    field.setFocus()
    field.setValue(50)
    scroll(field)
    assert field.value() == 40


def test_the_page_scrolls_where_the_wheel_passes_over_a_field(qtbot, window):
    window.resize(1200, 480)
    window.do.toggle_options()
    panel = window.options.panel
    window.composer.setFocus()
    bar = panel.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(0)
    scroll(panel.numbers["temperature"])
    assert bar.value() > 0


def test_the_wheel_never_changes_the_size_of_one_piece_of_code(qtbot):
    code = CodeBlock(100)
    qtbot.addWidget(code)
    code.set_block(Block("code", "a = 1\n" * (TALLEST + 1), "python", closed=True))
    code.resize(400, code.sizeHint().height())
    code.show()
    qtbot.waitUntil(code.isActiveWindow)
    code.edit.setFocus()
    before = code.edit.font().pointSizeF()
    place = QPointF(code.edit.mapTo(code, code.edit.rect().center()))
    QTest.wheelEvent(code.windowHandle(), place, QPoint(0, 120), QPoint(), Qt.KeyboardModifier.ControlModifier)
    QApplication.processEvents()
    assert code.edit.hasFocus() and code.edit.font().pointSizeF() == before
