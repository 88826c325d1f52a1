"""Lists the deleted chats and messages: each can be brought back, or taken off the disk for good."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QLocale, Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from app.core.words import tr, trn
from app.services.shelf import KEPT_DAYS, Deletion, Shelf
from app.ui import theme
from app.ui.labels import padded_row, tip

DELETION = Qt.ItemDataRole.UserRole


class DeletedDialog(QDialog):
    """A modal sheet over ``shelf``; deleted when closed."""

    def __init__(self, shelf: Shelf, parent: QWidget | None = None):
        super().__init__(parent)
        self._shelf = shelf
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Recently Deleted"))
        self.note = QLabel(wordWrap=True)
        self.chats = QListWidget()
        self.chats.setAccessibleName(tr("Deleted chats and messages"))
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
        for each in self._shelf.all_deleted():
            when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(each.at)), QLocale.FormatType.ShortFormat)
            if each.deletion.message_id is None:
                text = tr("{title} (deleted {when})", title=each.words, when=when)
            else:
                text = tr("“{words}” in {title} (message, deleted {when})", words=each.words, title=each.chat, when=when)
            item = QListWidgetItem(text)
            item.setData(DELETION, each.deletion)
            item.setSizeHint(padded_row())
            item.setToolTip(tip(text))
            self.chats.addItem(item)
        some = trn(
            "Deleted chats and messages stay here for {count} day.",
            "Deleted chats and messages stay here for {count} days.",
            KEPT_DAYS,
        )
        self.note.setText(some if self.chats.count() else tr("Nothing was deleted."))
        if self.chats.count():
            self.chats.setCurrentRow(0)
        self._update_buttons()

    def _update_buttons(self) -> None:
        for button in (self.restore, self.erase):
            button.setEnabled(bool(self._chosen()))

    def _chosen(self) -> list[Deletion]:
        return [item.data(DELETION) for item in self.chats.selectedItems()]

    def _restore(self) -> None:
        for deletion in self._chosen():
            self._shelf.restore(deletion.chat_id, deletion.message_id)
        self._fill()

    def _erase(self) -> None:
        chats = [each.chat_id for each in self._chosen() if each.message_id is None]
        self._shelf.delete_for_good(chats, [each.message_id for each in self._chosen() if each.message_id is not None])
        self._fill()
