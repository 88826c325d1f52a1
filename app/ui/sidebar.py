"""The list of chats: search, New chat, and the chats by day, each opened, renamed and deleted by mouse or keyboard."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFont, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.chat import Chat
from app.ui import theme

CHAT_ID = Qt.ItemDataRole.UserRole
SEARCH_MS = 150


def day_group(updated_at: float, today: date) -> str:
    """Today, Yesterday or Earlier, by the local calendar."""
    days = (today - datetime.fromtimestamp(updated_at).date()).days
    return "Today" if days <= 0 else "Yesterday" if days == 1 else "Earlier"


class ChatList(QListWidget):
    """Chats under day headings. Signals: ``open_asked(id)``; ``rename_asked(id, title)``; ``delete_asked(id)``."""

    open_asked = Signal(int)
    rename_asked = Signal(int, str)
    delete_asked = Signal(int)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._filling = False
        self.setAccessibleName("Chats")
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setUniformItemSizes(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.currentItemChanged.connect(self._on_current)
        self.itemChanged.connect(self._on_changed)
        self.viewport().setAutoFillBackground(False)

    def fill(self, chats: list[Chat], current: int | None, none: str = "") -> None:
        """Shows ``chats``, newest first, with ``current`` selected, or ``none`` in their place; announces nothing."""
        self._filling = True
        self.clear()
        if not chats and none:
            self.addItem(self._heading(none))
        heading = ""
        for chat in chats:
            group = day_group(chat.updated_at, date.today())
            if group != heading:
                heading = group
                self.addItem(self._heading(group))
            item = QListWidgetItem(chat.title)
            item.setData(CHAT_ID, chat.id)
            item.setToolTip(chat.title)
            item.setSizeHint(QSize(0, self.fontMetrics().height() + theme.S))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
            self.addItem(item)
            if chat.id == current:
                self.setCurrentItem(item)
        self._filling = False

    def titles(self) -> list[str]:
        """Headings and titles as shown, for tests and for VoiceOver's rotor."""
        return [self.item(row).text() for row in range(self.count())]

    def chat_ids(self) -> list[int]:
        """The chats on show, in order."""
        ids = (self.item(row).data(CHAT_ID) for row in range(self.count()))
        return [identifier for identifier in ids if identifier is not None]

    def current_id(self) -> int | None:
        """The selected chat."""
        item = self.currentItem()
        return item.data(CHAT_ID) if item is not None else None

    def edit_chat(self, chat_id: int) -> None:
        """Starts renaming in place."""
        for row in range(self.count()):
            if self.item(row).data(CHAT_ID) == chat_id:
                self.editItem(self.item(row))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # A key that the title's editor leaves over is none of the list's: Return would open the chat and take its focus.
        editing = self.state() is QAbstractItemView.State.EditingState
        chat_id = None if editing else self.current_id()
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and chat_id is not None:
            self.delete_asked.emit(chat_id)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and chat_id is not None:
            self.open_asked.emit(chat_id)
        else:
            super().keyPressEvent(event)

    def restyle(self) -> None:
        """Follows the palette."""
        for row in range(self.count()):
            if self.item(row).data(CHAT_ID) is None:
                self.item(row).setForeground(theme.current().quiet)

    def _heading(self, text: str) -> QListWidgetItem:
        item = QListWidgetItem(text)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        item.setForeground(theme.current().quiet)  # the palette's own colour of disabled text is too faint to read
        item.setFont(theme.scaled_font(85, QFont.Weight.DemiBold))
        item.setSizeHint(QSize(0, self.fontMetrics().height() + theme.S))
        return item

    def _on_current(self, item: QListWidgetItem | None, _before: QListWidgetItem | None) -> None:
        if not self._filling and item is not None and item.data(CHAT_ID) is not None:
            self.open_asked.emit(item.data(CHAT_ID))

    def _on_changed(self, item: QListWidgetItem) -> None:
        if not self._filling and item.data(CHAT_ID) is not None:
            # Queued: the list is refilled in answer, and must not be while its editor still closes.
            chat_id, title = item.data(CHAT_ID), item.text()
            QTimer.singleShot(0, self, lambda: self.rename_asked.emit(chat_id, title))

    def _show_menu(self, position: QPoint) -> None:
        item = self.itemAt(position)
        if item is None or item.data(CHAT_ID) is None:
            return
        chat_id = item.data(CHAT_ID)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        actions: tuple[tuple[str, Callable[[], None]], ...] = (
            ("Rename …", lambda: self.edit_chat(chat_id)),
            ("Delete …", lambda: self.delete_asked.emit(chat_id)),
        )
        for text, run in actions:
            action = QAction(text, menu)
            action.triggered.connect(run)
            menu.addAction(action)
        menu.popup(self.viewport().mapToGlobal(position))


class SearchField(QLineEdit):
    """Escape clears it; with nothing to clear the key is the window's, as ever."""

    def event(self, event: QEvent) -> bool:
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape and bool(self.text())
        if escape and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # or the window's own Escape would come first
            return True
        if escape and event.type() == QEvent.Type.KeyPress:
            self.clear()
            return True
        return super().event(event)


class Sidebar(QWidget):
    """``search_changed(str)`` follows the search field once typing settles; the buttons run the window's actions."""

    search_changed = Signal(str)

    def __init__(self, new_chat: QAction, models: QAction, settings: QAction, parent: QWidget | None = None):
        super().__init__(parent)
        self.search = SearchField(placeholderText="Search chats", clearButtonEnabled=True)
        self.search.setAccessibleName("Search chats")
        self._search_icon = self.search.addAction(theme.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self.chats = ChatList()
        self._settle = QTimer(self, interval=SEARCH_MS, singleShot=True)
        self._settle.timeout.connect(lambda: self.search_changed.emit(self.search.text()))
        self.search.textChanged.connect(lambda _text: self._settle.start())
        self._buttons = [self._action_button(action) for action in (new_chat, models, settings)]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        layout.setSpacing(theme.S)
        layout.addWidget(self.search)
        layout.addWidget(self._buttons[0])
        layout.addWidget(self.chats, 1)
        for button in self._buttons[1:]:
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self.restyle()

    def settle(self) -> None:
        """Drops a search that is still pending."""
        self._settle.stop()

    def restyle(self) -> None:
        """Follows the palette."""
        quiet = theme.current().quiet
        self.chats.restyle()
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
