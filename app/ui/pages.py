"""The pages that share the room above what is being written."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedWidget, QWidget


class Pages(QStackedWidget):
    """In a low window what is being written keeps its room and the page gives way: it scrolls."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setMinimumHeight(1)

    def hasHeightForWidth(self) -> bool:
        return False  # or the tallest page would claim its height, also while it is not on show
