"""Lists the deleted chats: each can be brought back, or taken off the disk for good."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QLocale, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from app.core.words import tr, trn
from app.services.shelf import KEPT_DAYS, Shelf
from app.ui import theme

CHAT_ID = Qt.ItemDataRole.UserRole


class DeletedDialog(QDialog):
    """A modal sheet over ``shelf``; deleted when closed."""

    def __init__(self, shelf: Shelf, parent: QWidget | None = None):
        super().__init__(parent)
        self._shelf = shelf
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Recently Deleted"))
        self.note = QLabel(wordWrap=True)
        self.chats = QListWidget()
        self.chats.setAccessibleName(tr("Deleted chats"))
        self.chats.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.chats.itemSelectionChanged.connect(self._update_buttons)
        self.restore = QPushButton(tr("Restore"))
        self.erase = QPushButton(tr("Delete for Good"))
        close = QPushButton(tr("Close"))
        self.restore.clicked.connect(self._restore)
        self.erase.clicked.connect(self._erase)
        close.clicked.connect(self.close)
        close.setDefault(True)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.S)
        buttons.addWidget(self.erase)
        buttons.addStretch(1)
        buttons.addWidget(self.restore)
        buttons.addWidget(close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.L, theme.L, theme.L)
        layout.setSpacing(theme.M)
        layout.addWidget(self.note)
        layout.addWidget(self.chats, 1)
        layout.addLayout(buttons)
        self.resize(480, 360)
        self._fill()

    def _fill(self) -> None:
        self.chats.clear()
        for chat, deleted_at in self._shelf.deleted_chats():
            when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(deleted_at)), QLocale.FormatType.ShortFormat)
            item = QListWidgetItem(tr("{title} (deleted {when})", title=chat.title, when=when))
            item.setData(CHAT_ID, chat.id)
            self.chats.addItem(item)
        some = trn("Deleted chats stay here for {count} day.", "Deleted chats stay here for {count} days.", KEPT_DAYS)
        self.note.setText(some if self.chats.count() else tr("No chats were deleted."))
        if self.chats.count():
            self.chats.setCurrentRow(0)
        self._update_buttons()

    def _update_buttons(self) -> None:
        for button in (self.restore, self.erase):
            button.setEnabled(bool(self._chosen()))

    def _chosen(self) -> list[int]:
        return [item.data(CHAT_ID) for item in self.chats.selectedItems()]

    def _restore(self) -> None:
        for chat_id in self._chosen():
            self._shelf.restore(chat_id)
        self._fill()

    def _erase(self) -> None:
        self._shelf.delete_for_good(self._chosen())
        self._fill()
