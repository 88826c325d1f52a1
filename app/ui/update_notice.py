"""Tells what a look for updates found: in a dialog, in a notice, or not at all where nobody asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.updates import Release
from app.core.words import tr
from app.services.updates import Updates
from app.ui.update_dialog import UpdateDialog
from engine import __version__

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class UpdateNotice(QObject):
    """A look that the user asked for always answers; a daily one speaks only where there is something newer."""

    def __init__(self, window: MainWindow, updates: Updates):
        super().__init__(window)
        self._window, self._updates, self._asked = window, updates, False
        updates.found.connect(self._on_found)
        updates.current.connect(lambda: self._answer(tr("Slipstream {version} is the newest version.", version=__version__)))
        updates.failed.connect(self._answer)

    def look(self) -> None:
        """Looks for the user, who waits for the answer."""
        self._asked = True
        self._updates.look()

    def _on_found(self, release: Release) -> None:
        if self._asked:
            self._asked = False
            self._show(release)
        else:
            text = tr("Slipstream {version} is out.", version=release.version)
            self._window.banner.show_message(text, tr("What is new"), lambda: self._show(release), until="chat")

    def _show(self, release: Release) -> None:
        UpdateDialog(release, self._window).open()

    def _answer(self, text: str) -> None:
        if self._asked:
            self._asked = False
            self._window.banner.show_message(text)
