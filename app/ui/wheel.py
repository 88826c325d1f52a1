"""Keeps the wheel from changing values that the pointer only passes over, while a page is scrolled."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget


class _Passing(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.Wheel or (isinstance(watched, QWidget) and watched.hasFocus()):
            return False
        event.ignore()  # for the page around it
        return True


def let_wheel_pass(*fields: QWidget) -> None:
    """Spin boxes and choices take the wheel only while they have the focus, and take no focus by the wheel."""
    for field in fields:
        field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        field.installEventFilter(_Passing(field))
