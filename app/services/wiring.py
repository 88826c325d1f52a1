"""Builds the services of one data folder and shuts them down in the right order, on every way out."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QObject

from app.services.comparison_history import ComparisonHistory
from app.services.conversation import Conversation
from app.services.downloads import Downloads
from app.services.engine_client import EngineClient
from app.services.learning import Learning
from app.services.library import Library
from app.services.meter_feed import MeterFeed
from app.services.pair_options import PairOptionsService
from app.services.reading import Reading
from app.services.server import LocalServer
from app.services.settings import SettingsService
from app.services.shelf import Shelf
from app.services.transfer import Transfer
from app.services.updates import Updates
from app.store import ChatStore, ComparisonStore, StoreError
from app.worker import Loader, load_engine

CHATS = "chats.sqlite3"
log = logging.getLogger(__name__)


class Services(QObject):
    """Everything behind the window. Raises ``StoreError`` where the data folder cannot be used.

    ``recovered`` counts the answers that the last run left unfinished.
    """

    def __init__(self, folder: Path, loader: Loader = load_engine, parent: QObject | None = None):
        super().__init__(parent)
        self.folder = folder
        self.store = ChatStore(folder / CHATS)
        self.recovered = self.store.recover()
        self.settings = SettingsService(self.store, self)
        self.client = EngineClient(loader, self)
        self.pair_options = PairOptionsService(self.store, self)
        self.client.options_of = self.pair_options.load_options
        self.meter = MeterFeed(self.client, self)
        self.conversation = Conversation(self.store, self.client, self.settings, self)
        self.shelf = Shelf(self.store, self.conversation, self)
        self.shelf.purged.connect(self.client.forget_prefixes)  # they hold the tokens of what is gone
        self.shelf.tidy()
        self.comparisons = ComparisonHistory(ComparisonStore(self.store), self.conversation.comparison, self)
        self.reading = Reading(self)
        self.transfer = Transfer(self.store, self.conversation, self)
        self.learning = Learning(self.store, self.client, self.settings, self)
        self.conversation.chats_changed.connect(self.learning.chats_changed)
        self.server = LocalServer(self.client, self.settings, self)
        self.updates = Updates(self.store, self.settings, self)
        self.downloads = Downloads(self.store, self)
        self.library = Library(self.downloads, self.store, self.pair_options, self)
        self._closed = False

    def catch_up(self) -> None:
        """Looks at the models of this machine and goes on with downloads. For when the window is there: it costs the start."""
        self.downloads.restore()
        self.library.refresh()
        self.server.start_with_program()

    def shutdown(self, limit_s: float = 5.0) -> bool:
        """Saves the partial answer, stops engine and downloads, closes the store. False: one of them did not stop in time."""
        if self._closed:
            return True
        self._closed = True
        self.updates.stop()
        self.server.stop()
        self.reading.stop()
        self.transfer.stop()
        self.learning.stop()
        self.conversation.stop()
        self.library.shutdown()
        paused = self.downloads.shutdown()
        if not paused:
            log.warning("a download did not pause in time: it ends with the process and goes on at the next start")
        stopped = self.client.shutdown(limit_s)
        served = self.server.shutdown()
        self.conversation.close()
        try:
            self.store.close()
        except StoreError as error:
            log.error("the chats could not be closed: %s", error)
        if not stopped:
            log.error("the engine did not stop within %.0f s", limit_s)
        return stopped and paused and served
