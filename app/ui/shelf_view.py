"""The window's side of the shelf: fills the list of chats, runs what it asks for, and offers to take deleting back."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

from app.core.chat_rows import chat_rows, free_folder_name, hit_rows
from app.core.words import tr, trn
from app.services.shelf import Deletion
from app.store import StoreError

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

COLLAPSED = "collapsed_folders"
DAY_CHECK_MS = 60_000


class ShelfView(QObject):
    """Connects the sidebar's list with the services."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._shelf, self._store = window, window.services.shelf, window.services.store
        self._list = window.sidebar.chats
        self._day = date.today()  # that the list was filled on
        self._collapsed = {str(name) for name in self._store.setting(COLLAPSED, [])}
        window.sidebar.search_changed.connect(lambda _text: self.fill())
        self._list.open_asked.connect(window.do.open_chat)
        self._list.rename_asked.connect(self._shelf.rename)
        self._list.delete_asked.connect(self._shelf.delete)
        self._list.undo_asked.connect(self._shelf.undo)
        self._list.pin_asked.connect(self._shelf.pin)
        self._list.move_asked.connect(self.move)
        self._list.new_folder_asked.connect(self.move_to_new_folder)
        self._list.folder_renamed.connect(self._shelf.rename_folder)
        self._list.dissolve_asked.connect(self._shelf.dissolve_folder)
        self._list.folder_toggled.connect(self.toggle)
        self._list.files_dropped.connect(window.do.import_files)
        self._shelf.deleted.connect(self._on_deleted)
        self._shelf.settled.connect(lambda: window.banner.settle("undone"))  # its Undo would take back another one
        window.composer.edit.undoes_elsewhere = lambda: window.banner.stays_until("undone")
        transfer = window.services.transfer
        transfer.progressed.connect(lambda text: window.banner.show_progress(text, tr("Cancel"), transfer.cancel))
        transfer.told.connect(window.banner.show_notice)
        transfer.failed.connect(window.banner.show_message)
        transfer.imported.connect(lambda _chat_id: window.banner.settle("over"))
        transfer.imported.connect(window.do.open_chat)
        QGuiApplication.instance().applicationStateChanged.connect(self._on_application_state)  # type: ignore[union-attr]
        midnight = QTimer(self, interval=DAY_CHECK_MS, timerType=Qt.TimerType.VeryCoarseTimer)
        midnight.timeout.connect(self.follow_day)
        midnight.start()

    def fill(self) -> None:
        """Lists the chats, or those that the search field finds."""
        self._day = date.today()
        wanted, chat = self._window.sidebar.search.text().strip(), self._window.services.conversation.chat
        try:
            if wanted:
                found = self._store.search(wanted)
                hits = {hit.chat.id: (hit.excerpt, hit.message_id) for hit in found}
                rows = hit_rows([hit.chat for hit in found], self._day, hits)
            else:
                rows = chat_rows(self._store.chats(), self._day, self._collapsed)
        except StoreError as error:
            self._window.banner.show_message(str(error))
            return
        none = tr("No chats found") if wanted else tr("Your chats will be listed here.")
        self._window.sidebar.show_note("" if rows else none)
        self._list.fill(rows, chat.id if chat is not None else None)

    def _on_application_state(self, state: Qt.ApplicationState) -> None:
        if state is Qt.ApplicationState.ApplicationActive:
            self.follow_day()

    def follow_day(self) -> None:
        """In a window that was left open overnight, what was written today was written yesterday."""
        if date.today() != self._day:
            self.fill()

    def toggle(self, folder: str) -> None:
        """Opens or closes a folder."""
        self._collapsed ^= {folder}
        self._window.services.conversation.remember(COLLAPSED, sorted(self._collapsed))
        self.fill()

    def move(self, chat_id: int, folder: str) -> None:
        """Puts a chat into a folder, or with "" out of it; a pinned one is unpinned, or it would not be seen there."""
        chat = self._store.chat(chat_id)
        if chat is None:
            return
        if chat.pinned:
            self._shelf.pin(chat_id, False)
        if chat.folder != folder:
            self._shelf.move(chat_id, folder)

    def move_to_new_folder(self, chat_id: int) -> None:
        """Makes a folder for a chat; its name is asked for in the list."""
        name = free_folder_name(chat.folder for chat in self._store.chats())
        self.move(chat_id, name)
        self._list.edit_folder(name)

    def _on_deleted(self, deletion: Deletion) -> None:
        text = tr("Chat deleted.") if deletion.message_id is None else tr("Message deleted, with what followed it.")
        self._window.banner.show_notice(text, tr("Undo"), self._shelf.undo, "undone")
        self._window.update_commands()


def damage_words(file: str, saved: int) -> str:
    """What became of a damaged chat file that was set aside under the name ``file``."""
    if not saved:
        return tr("The chat file was damaged. It is kept as {file}; no chat in it could be read, so a new one was made.", file=file)
    return trn(
        "The chat file was damaged. It is kept as {file}; {count} chat could be saved from it.",
        "The chat file was damaged. It is kept as {file}; {count} chats could be saved from it.",
        saved,
        file=file,
    )
