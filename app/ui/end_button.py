"""The button over a scrolled text that goes to its end."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QToolButton, QWidget

from app.core.words import tr
from app.ui import theme


class EndButton(QToolButton):
    """Lies at the foot of ``view``, in the middle: at the side it would lie on the messages' own buttons. Hidden at first."""

    def __init__(self, view: QWidget):
        super().__init__(view)
        self._view = view
        self.setIconSize(QSize(18, 18))
        self.setAccessibleName(tr("Jump to the end"))
        self.setToolTip(tr("Jump to the end"))
        self.restyle()
        self.hide()

    def place(self, shown: bool) -> None:
        """Puts it where the view is now, in front of what came since."""
        hint, view = self.sizeHint(), self._view.rect()
        left, top = view.center().x() - hint.width() // 2, view.bottom() - hint.height() - theme.M
        self.setGeometry(left, top, hint.width(), hint.height())
        self.setVisible(shown)
        self.raise_()

    def restyle(self) -> None:
        """Follows the palette."""
        self.setIcon(theme.icon("down"))
