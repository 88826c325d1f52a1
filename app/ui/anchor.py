"""Keeps one widget of a scroll area where it is while what is above it is still laid out."""

from __future__ import annotations

from PySide6.QtWidgets import QScrollArea, QWidget
from shiboken6 import isValid


class Anchor:
    """Holds a widget of ``area``'s page until ``let_go``; ``moving`` while it scrolls itself."""

    def __init__(self, area: QScrollArea, page: QWidget):
        self._area, self._page = area, page
        self._held: tuple[QWidget, int] | None = None
        self.moving = False

    def hold(self, widget: QWidget, height: int) -> None:
        """Keeps ``widget`` at ``height`` pixels below the top of the view."""
        self._held = widget, height
        self.restore()

    @property
    def holds(self) -> bool:
        """Whether a widget is held."""
        return self._held is not None and isValid(self._held[0])

    def restore(self) -> bool:
        """Scrolls to where the widget is held; False where none is."""
        if self._held is None or not self.holds:  # a block that was drawn anew
            return False
        widget, height = self._held
        before, self.moving = self.moving, True  # scrolling can lay out more, and so lead here again
        self._area.verticalScrollBar().setValue(widget.mapTo(self._page, widget.rect().topLeft()).y() - height)
        self.moving = before
        return True

    def let_go(self) -> None:
        """The view may go anywhere again."""
        self._held = None
