"""The command palette: every command, chat and model by some letters of its name, with the keys alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QDialog, QHeaderView, QLineEdit, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from app.core.fuzzy import fuzzy_score
from app.core.words import tr
from app.store import StoreError
from app.ui import theme

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

SHOWN = 60
STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be run: its name, what it is or its shortcut, and whether it can be done now."""

    name: str
    hint: str
    run: Callable[[], object]
    enabled: bool = True


def entries_of(window: MainWindow) -> list[Entry]:
    """The window's commands in the order of the menus, then the chats, then the models."""
    native = QKeySequence.SequenceFormat.NativeText
    found = [
        Entry(action.text().rstrip(" …"), action.shortcut().toString(native), action.trigger, action.isEnabled())
        for key, action in window.actions_by_id.items()
        if key != "palette"
    ]
    try:
        chats = window.services.store.chats()
    except StoreError:
        chats = []
    found += [Entry(chat.title, tr("Chat"), partial(window.do.open_chat, chat.id)) for chat in chats]
    pairs = [(pair.name, pair.id) for pair in window.model_manager.pairs()]
    return found + [Entry(name, tr("Model"), partial(window.do.load_model, pair)) for name, pair in pairs]


class Palette(QDialog):
    """Closes with Escape, and with the entry that is chosen, which runs after it is gone."""

    def __init__(self, entries: Sequence[Entry], parent: QWidget):
        super().__init__(parent)
        self.setWindowTitle(tr("Command Palette"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._entries, self._shown = list(entries), list[Entry]()
        self.field, self.list = QLineEdit(), QTableWidget(0, 2)
        self.field.setPlaceholderText(tr("A command, a chat or a model"))
        self.field.setAccessibleName(tr("Name of a command, a chat or a model"))
        self.field.setClearButtonEnabled(True)
        self.list.setAccessibleName(tr("Commands, chats and models"))
        self.list.horizontalHeader().hide()
        self.list.verticalHeader().hide()
        self.list.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.list.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.list.setShowGrid(False)
        self.list.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.list.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.list.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keys that move in it work from the field
        self.list.cellClicked.connect(lambda _row, _column: self.choose())
        self.field.textChanged.connect(self.fill)
        self.field.returnPressed.connect(self.choose)
        self.field.installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        layout.addWidget(self.field)
        layout.addWidget(self.list)
        self.resize(min(560, parent.width() - 2 * theme.XL), min(420, parent.height() - 2 * theme.XL))
        self.fill("")

    def fill(self, typed: str) -> None:
        """Lists what fits ``typed``, the best first; what can be done now before what cannot."""
        scored = [(fuzzy_score(typed, entry.name), entry) for entry in self._entries]
        fitting = [(score, entry) for score, entry in scored if score is not None]
        if typed.strip():
            fitting.sort(key=lambda pair: (not pair[1].enabled, -pair[0]))
        self._shown = [entry for _score, entry in fitting[:SHOWN]]
        self.list.clearContents()
        self.list.setRowCount(len(self._shown))
        flags = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
        for row, entry in enumerate(self._shown):
            for column, text in enumerate((entry.name, entry.hint)):
                item = QTableWidgetItem(text)
                item.setFlags(flags if entry.enabled else Qt.ItemFlag.NoItemFlags)
                self.list.setItem(row, column, item)
        first = next((row for row, entry in enumerate(self._shown) if entry.enabled), None)
        if first is not None:
            self.list.setCurrentCell(first, 0)

    @property
    def names(self) -> list[str]:
        """The names on show."""
        return [entry.name for entry in self._shown]

    def choose(self) -> None:
        """Runs the entry that is marked, if it can be done."""
        place = self.list.currentRow()
        if 0 <= place < len(self._shown) and self._shown[place].enabled:
            run = self._shown[place].run
            self.accept()
            run()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and Qt.Key(event.key()) in STEPS:
            self._step(STEPS[Qt.Key(event.key())])
            return True
        return super().eventFilter(watched, event)

    def _step(self, step: int) -> None:
        """Moves the mark to the next entry in that direction that can be done."""
        enabled = [index for index, entry in enumerate(self._shown) if entry.enabled]
        current = self.list.currentRow()
        if enabled:
            place = enabled.index(current) + step if current in enabled else 0
            self.list.setCurrentCell(enabled[min(max(place, 0), len(enabled) - 1)], 0)
