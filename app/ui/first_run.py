"""What a new user is shown beside the chat: the tour once, and the bigger model that this computer has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.words import tr
from app.ui.tour import Tour
from engine import PairInfo
from engine.models.entries import PairEntry

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class FirstRun(QObject):
    """``tour`` may be started at any time."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self.tour = window, Tour(window)
        self._suggested = ""
        window.empty.offer_taken.connect(self._open)
        window.services.client.loaded.connect(self._ask)

    def _ask(self, info: PairInfo) -> None:
        self._window.services.library.suggest(info.id, self._offer)

    def _offer(self, entry: PairEntry | None) -> None:
        entry = entry if entry is not None and entry.state != "ready" else None  # nothing to get
        self._suggested = entry.id if entry is not None else ""
        self._window.empty.show_offer(tr("A bigger model fits this computer: {name} …", name=entry.name) if entry else "")

    def _open(self) -> None:
        self._window.model_manager.show(self._suggested)
