"""The transcript's own buttons on a message: which version is on show, editing, and a menu for the rest."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QToolButton, QWidget

from app.core.words import tr
from app.ui import theme


class MessageTools(QWidget):
    """Signals: ``switch_asked(step)`` for the version before (-1) or after (1); ``edit_asked()``; ``branch_asked()``;
    ``delete_asked()``.
    """

    switch_asked = Signal(int)
    edit_asked = Signal()
    branch_asked = Signal()
    delete_asked = Signal()

    def __init__(self, editable: bool, parent: QWidget | None = None):
        super().__init__(parent)
        self.before = self._button(tr("Previous version"))
        self.after = self._button(tr("Next version"))
        self.place = QLabel()
        self.edit = self._button(tr("Edit message"))
        self.more = self._button(tr("More"))
        self.before.clicked.connect(lambda: self.switch_asked.emit(-1))
        self.after.clicked.connect(lambda: self.switch_asked.emit(1))
        self.edit.clicked.connect(self.edit_asked)
        self.more.clicked.connect(self._show_menu)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for widget in (self.before, self.place, self.after, self.edit, self.more):
            layout.addWidget(widget)
        self.edit.setVisible(editable)
        self.show_version(1, 1)
        self.restyle(100)

    def show_version(self, place: int, count: int) -> None:
        """Says which of several versions this is; nothing where it is the only one."""
        self.place.setText(tr("{place} of {count}", place=place, count=count))
        self.place.setAccessibleName(tr("Version {place} of {count}", place=place, count=count))
        for widget in (self.before, self.place, self.after):
            widget.setVisible(count > 1)
        self.before.setEnabled(place > 1)
        self.after.setEnabled(place < count)

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        quiet = theme.current().quiet
        self.place.setFont(theme.figure_font(text_size * 85 // 100))
        theme.tint(self.place, quiet)
        for button, name in ((self.before, "left"), (self.after, "right"), (self.edit, "edit"), (self.more, "more")):
            button.setIcon(theme.icon(name, quiet))

    def menu(self) -> QMenu:
        """What else can be done with the message; made when it is asked for, since a long chat has many messages."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Branch into a New Chat"), self.branch_asked.emit)
        menu.addAction(tr("Delete With What Follows"), self.delete_asked.emit)
        return menu

    def _show_menu(self) -> None:
        self.menu().popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _button(self, name: str) -> QToolButton:
        button = QToolButton(autoRaise=True)
        button.setIconSize(QSize(14, 14))
        button.setAccessibleName(name)
        button.setToolTip(name)
        return button
