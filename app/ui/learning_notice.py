"""Shows what learning from the chats does, in the meter and in the menu, and asks before what was learned is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMessageBox

from app.core.words import mark, tr
from app.services.engine_client import BUSY
from app.services.learning import Learning

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

FORGET = mark(
    "Delete what was learned from your chats?\n"
    "The learned drafts of all models are deleted, the original ones are used again, and nothing more is learned until you agree "
    "again. Your chats stay."
)


class LearningNotice(QObject):
    """The window's side of ``Learning``."""

    def __init__(self, window: MainWindow, learning: Learning):
        super().__init__(window)
        self._window, self._learning = window, learning
        learning.changed.connect(self.show)

    def show(self) -> None:
        """Follows the service; while an answer is written its figures need the room."""
        client = self._window.services.client
        busy = client.state in BUSY or client.lending.active
        self._window.meter.show_note("" if busy else self._learning.status)
        self._window.update_commands()

    def learn_now(self) -> None:
        """Begins at once, or says what is missing."""
        if self._window.services.settings.current.learn_from_chats:
            self._learning.learn_now()
        else:
            text = tr("Learning from your chats is off: read what it does in the settings and turn it on there.")
            self._window.banner.show_message(text, tr("Settings"), self._window.do.show_settings)

    def forget(self) -> None:
        """Asks, then deletes what was learned."""
        box = QMessageBox(QMessageBox.Icon.Warning, tr("Forget what was learned"), tr(FORGET), parent=self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        delete = box.addButton(tr("Forget"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        delete.clicked.connect(self._learning.forget)
        box.open()
