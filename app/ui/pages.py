"""The pages that share the room above what is being written."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QStackedWidget, QWidget


class Pages(QStackedWidget):
    """In a low window what is being written keeps its room and the page gives way: it scrolls."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setMinimumHeight(1)

    def hasHeightForWidth(self) -> bool:
        return False  # or the tallest page would claim its height, also while it is not on show


class Page(QScrollArea):
    """A page whose ``content`` scrolls where it has little room."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.content = QWidget()
        self.setWidget(self.content)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for part in (self.content, self.viewport()):
            part.setAutoFillBackground(False)
