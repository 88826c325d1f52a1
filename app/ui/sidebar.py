"""The sidebar: search, New chat, the list of chats, and Settings."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget

from app.core.words import tr
from app.ui import theme
from app.ui.chat_list import ChatList
from app.ui.labels import name_buttons

SEARCH_MS = 150


class SearchField(QLineEdit):
    """Escape clears it; with nothing to clear the key is the window's, as ever. ``left()``: Down goes on to the list."""

    left = Signal()

    def event(self, event: QEvent) -> bool:
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape and bool(self.text())
        if escape and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # or the window's own Escape would come first
            return True
        if escape and event.type() == QEvent.Type.KeyPress:
            self.clear()
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Down:
            self.left.emit()
            return True
        return super().event(event)


class Sidebar(QWidget):
    """``search_changed(str)`` follows the search field once typing settles; the buttons run the window's actions."""

    search_changed = Signal(str)

    def __init__(self, new_chat: QAction, models: QAction, settings: QAction, parent: QWidget | None = None):
        super().__init__(parent)
        self.search = SearchField(placeholderText=tr("Search chats"), clearButtonEnabled=True)
        self.search.setAccessibleName(tr("Search chats"))
        name_buttons(self.search)
        self._search_icon = self.search.addAction(theme.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self._search_icon.setText(tr("Search chats"))
        self.chats, self.note = ChatList(), QLabel(wordWrap=True)
        self._settle = QTimer(self, interval=SEARCH_MS, singleShot=True)
        self._settle.timeout.connect(lambda: self.search_changed.emit(self.search.text()))
        self.search.textChanged.connect(lambda _text: self._settle.start())
        self.search.left.connect(self.chats.setFocus)
        self.search.returnPressed.connect(self._choose_first)
        self._buttons = [self._action_button(action) for action in (new_chat, models, settings)]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        layout.setSpacing(theme.S)
        layout.addWidget(self.search)
        layout.addWidget(self._buttons[0])
        layout.addWidget(self.note)
        layout.addWidget(self.chats, 1)
        self.note.hide()
        for button in self._buttons[1:]:
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self.restyle()

    def _choose_first(self) -> None:
        if self._settle.isActive():  # what was typed last counts, too
            self._settle.stop()
            self.search_changed.emit(self.search.text())
        self.chats.choose_first()

    def show_note(self, text: str) -> None:
        """One line above the list, or none for ""."""
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def settle(self) -> None:
        """Drops a search that is still pending."""
        self._settle.stop()

    def restyle(self) -> None:
        """Follows the palette."""
        quiet = theme.current().quiet
        self.chats.restyle()
        theme.tint(self.note, quiet)
        self._search_icon.setIcon(theme.icon("search", quiet))
        for button, name in zip(self._buttons, ("plus", "models", "settings"), strict=True):
            button.setIcon(theme.icon(name))

    def _action_button(self, action: QAction) -> QToolButton:
        button = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setText(action.text().removesuffix(" …"))
        button.setAccessibleName(button.text())
        keys = action.shortcut()
        button.setToolTip(f"{button.text()} ({keys.toString(keys.SequenceFormat.NativeText)})")
        button.clicked.connect(action.trigger)
        return button
