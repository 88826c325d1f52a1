"""The list of chats as a widget: chats opened, renamed, pinned, moved and deleted by mouse or keyboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemDelegate, QAbstractItemView, QListView, QMenu, QWidget

from app.core.chat_rows import Row
from app.core.words import tr
from app.ui.chat_model import ChatDelegate, ChatModel, Index
from app.ui.labels import plain


class ChatList(QListView):
    """Signals: ``open_asked(id, message id or None)``; ``rename_asked(id, title)``; ``delete_asked(id)``; ``undo_asked()``;
    ``pin_asked(id, pinned)``; ``move_asked(id, folder)``; ``new_folder_asked(id)``; ``folder_renamed(old, new)``;
    ``folder_toggled(name)``; ``dissolve_asked(name)``; ``files_dropped(list[Path])``.
    """

    open_asked = Signal(int, object)
    rename_asked = Signal(int, str)
    delete_asked = Signal(int)
    undo_asked = Signal()
    pin_asked = Signal(int, bool)
    move_asked = Signal(int, str)
    new_folder_asked = Signal(int)
    folder_renamed = Signal(str, str)
    folder_toggled = Signal(str)
    dissolve_asked = Signal(str)
    files_dropped = Signal(list)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._filling = False
        self._waiting: tuple[list[Row], int | None] | None = None
        self.rows = ChatModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(ChatDelegate(self))
        self.setAccessibleName(tr("Chats"))
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setUniformItemSizes(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.clicked.connect(self._on_clicked)
        self.rows.dropped.connect(self.move_asked)
        self.rows.files_dropped.connect(self.files_dropped)
        # Queued: the list is refilled in answer, and must not be while its editor still closes.
        self.rows.chat_renamed.connect(self.rename_asked, Qt.ConnectionType.QueuedConnection)
        self.rows.folder_renamed.connect(self.folder_renamed, Qt.ConnectionType.QueuedConnection)
        self.viewport().setAutoFillBackground(False)

    def fill(self, rows: list[Row], current: int | None) -> None:
        """Shows ``rows`` with the chat ``current`` selected; announces nothing. While a title is edited it waits for its end."""
        if self.state() is QAbstractItemView.State.EditingState:
            self._waiting = (rows, current)
            return
        self._waiting, self._filling = None, True
        if rows != self.rows.rows:
            place = self.verticalScrollBar().value()
            self.setUniformItemSizes(not any(row.excerpt for row in rows))
            self.rows.show_rows(rows)
            self.verticalScrollBar().setValue(place)
        at = next((number for number, row in enumerate(rows) if row.chat_id == current and current is not None), None)
        if at is None:
            self.setCurrentIndex(QModelIndex())
        elif at != self.currentIndex().row():
            self.setCurrentIndex(self.rows.index(at))
        self._filling = False

    def titles(self) -> list[str]:
        """Headings, folders and titles as shown."""
        return [row.text for row in self.rows.rows]

    def chat_ids(self) -> list[int]:
        """The chats on show, in order."""
        return [row.chat_id for row in self.rows.rows if row.chat_id is not None]

    def folders(self) -> list[str]:
        """The folders, in order."""
        return [row.folder for row in self.rows.rows if row.kind == "folder"]

    def current_id(self) -> int | None:
        """The selected chat."""
        row = self.rows.row(self.currentIndex())
        return row.chat_id if row is not None else None

    def edit_chat(self, chat_id: int) -> None:
        """Starts renaming in place."""
        self._edit(lambda row: row.chat_id == chat_id)

    def edit_folder(self, name: str) -> None:
        """Starts renaming a folder in place."""
        self._edit(lambda row: row.kind == "folder" and row.folder == name)

    def restyle(self) -> None:
        """Follows the palette."""
        self.viewport().update()

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        row = self.rows.row(current)
        if not self._filling and row is not None and row.chat_id is not None:
            self.open_asked.emit(row.chat_id, row.message_id)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        QTimer.singleShot(0, self, self._fill_waiting)

    def _fill_waiting(self) -> None:
        if self._waiting is not None:  # or a newer one came first
            self.fill(*self._waiting)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # A key that the title's editor leaves over is none of the list's: Return would open the chat and take its focus.
        editing = self.state() is QAbstractItemView.State.EditingState
        row = None if editing else self.rows.row(self.currentIndex())
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.matches(QKeySequence.StandardKey.Undo) and not editing:
            self.undo_asked.emit()
        elif row is not None and row.kind == "folder" and (is_return or event.key() == Qt.Key.Key_Space):
            self.folder_toggled.emit(row.folder)
        elif row is None or row.chat_id is None:
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.delete_asked.emit(row.chat_id)
        elif is_return:
            self.open_asked.emit(row.chat_id, row.message_id)
        else:
            super().keyPressEvent(event)

    def chat_menu(self, row: Row) -> QMenu:
        """What can be done with a chat."""
        chat_id, menu = row.chat_id, self._menu()
        assert chat_id is not None
        menu.addAction(tr("Rename …"), lambda: self.edit_chat(chat_id))
        menu.addAction(tr("Unpin") if row.pinned else tr("Pin"), lambda: self.pin_asked.emit(chat_id, not row.pinned))
        menu.addMenu(self.move_menu(chat_id, menu))
        menu.addSeparator()
        menu.addAction(tr("Delete"), lambda: self.delete_asked.emit(chat_id))
        return menu

    def move_menu(self, chat_id: int, parent: QWidget | None = None) -> QMenu:
        """The folders that a chat can be put into."""
        menu = QMenu(tr("Move to Folder"), parent or self)
        for name in self.folders():
            menu.addAction(plain(name), partial(self.move_asked.emit, chat_id, name))
        menu.addAction(tr("New Folder …"), lambda: self.new_folder_asked.emit(chat_id))
        menu.addAction(tr("No Folder"), lambda: self.move_asked.emit(chat_id, ""))
        return menu

    def show_move_menu(self, chat_id: int) -> None:
        """Asks for the folder of a chat, for who has no mouse."""
        menu = self.move_menu(chat_id)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.mapToGlobal(self.rect().topLeft()))

    def choose_first(self) -> None:
        """Opens the first chat on show."""
        first = next((number for number, row in enumerate(self.rows.rows) if row.chat_id is not None), None)
        if first is None:
            return
        self.setFocus()
        row = self.rows.rows[first]
        self._filling = True  # asked for below, also where it is the one that is open already
        self.setCurrentIndex(self.rows.index(first))
        self._filling = False
        assert row.chat_id is not None
        self.open_asked.emit(row.chat_id, row.message_id)

    def folder_menu(self, row: Row) -> QMenu:
        """What can be done with a folder."""
        menu = self._menu()
        toggle = tr("Open Folder") if row.collapsed else tr("Close Folder")
        menu.addAction(toggle, lambda: self.folder_toggled.emit(row.folder))
        menu.addAction(tr("Rename Folder …"), lambda: self.edit_folder(row.folder))
        menu.addAction(tr("Remove Folder, Keep Chats"), lambda: self.dissolve_asked.emit(row.folder))
        return menu

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _edit(self, wanted: Callable[[Row], bool]) -> None:
        for number, row in enumerate(self.rows.rows):
            editor = self.indexWidget(self.rows.index(number))
            if editor is not None and wanted(row):
                return  # it is being renamed already
            if editor is not None:
                self.commitData(editor)
                self.closeEditor(editor, QAbstractItemDelegate.EndEditHint.NoHint)
                break
        for number, row in enumerate(self.rows.rows):
            if wanted(row):
                self.edit(self.rows.index(number))
                return

    def _on_clicked(self, index: QModelIndex) -> None:
        row = self.rows.row(index)
        if row is None:
            return
        if row.kind == "folder":
            self.folder_toggled.emit(row.folder)
        elif row.chat_id is not None:
            self.open_asked.emit(row.chat_id, row.message_id)  # the chat may be open already: at this place, with the focus

    def _show_menu(self, position: QPoint) -> None:
        index = self.indexAt(position)  # the menu key asks from anywhere
        row = self.rows.row(index if index.isValid() else self.currentIndex())
        if row is not None and row.kind != "heading":
            menu = self.chat_menu(row) if row.kind == "chat" else self.folder_menu(row)
            menu.popup(self.viewport().mapToGlobal(position))
