"""A small window of names and figures that opens beside what they explain and closes with the next click or Escape."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QWidget

from app.ui import theme


class DetailsPopup(QFrame):
    """``rows`` are (name, figure), ``note`` is a sentence below them; all can be selected and copied."""

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], note: str, parent: QWidget):
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAccessibleName(title)
        self.rows = list(rows)
        grid = QGridLayout(self)
        grid.setContentsMargins(theme.L, theme.M, theme.L, theme.M)
        grid.setHorizontalSpacing(theme.XL)
        grid.setVerticalSpacing(theme.XS)
        for line, (name, figure) in enumerate(rows):
            left, right = QLabel(name), QLabel(figure)
            theme.tint(left, theme.current().quiet)
            right.setFont(theme.figure_font())
            right.setAlignment(Qt.AlignmentFlag.AlignRight)
            right.setAccessibleName(f"{name}: {figure}")
            grid.addWidget(left, line, 0)
            grid.addWidget(right, line, 1)
            for label in (left, right):
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if note:
            text = QLabel(note, wordWrap=True)
            text.setTextFormat(Qt.TextFormat.PlainText)
            text.setMinimumWidth(text.fontMetrics().averageCharWidth() * 44)
            grid.addWidget(text, len(rows), 0, 1, 2)

    def show_at(self, anchor: QWidget, above: bool = False) -> None:
        """Opens below ``anchor``, or above it, within its screen."""
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(0, -self.height() - theme.XS if above else anchor.height() + theme.XS))
        screen = anchor.screen().availableGeometry()
        x = max(screen.left(), min(corner.x(), screen.right() - self.width()))
        y = max(screen.top(), min(corner.y(), screen.bottom() - self.height()))
        self.move(x, y)
        self.show()
        self.setFocus()
