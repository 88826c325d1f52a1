"""Looks for a newer version: on request, or once a day where the user agreed. It tells, and never installs."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply, QNetworkRequest

from app.core.updates import FEED_LIMIT, FeedError, Source, is_newer, read_feed, source
from app.core.words import mark, tr
from app.services.settings import KeyValueStore, SettingsService
from app.store import StoreError
from engine import __version__

EVERY_S = 24 * 3600
TIMEOUT_MS = 15_000
LAST = "updates_looked_at"
NO_FEED = mark("This build has no update feed: look where you got it for a newer version.")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Updates(QObject):
    """``found(Release)``, ``current()`` or ``failed(str)`` follows every look; nothing is sent but the request itself."""

    found = Signal(object)
    current = Signal()
    failed = Signal(str)

    def __init__(self, store: KeyValueStore, settings: SettingsService, parent: QObject | None = None, feed: Source | None = None):
        super().__init__(parent)
        self._store, self._settings = store, settings
        self.source = feed if feed is not None else source()
        self._network: QNetworkAccessManager | None = None
        self._reply: QNetworkReply | None = None

    def look_if_due(self, now: Callable[[], float] = time.time) -> bool:
        """Looks where the user agreed, the build has a feed and the last look is a day old. Says whether it does."""
        agreed = self._settings.current.check_updates and self.source.usable
        last = self._store.setting(LAST, 0)
        # A clock that was set back must not end the looking for ever.
        if not agreed or (isinstance(last, int | float) and 0 <= now() - last < EVERY_S):
            return False
        try:
            self._store.set_setting(LAST, now())
        except StoreError:
            return False
        self.look()
        return True

    def look(self) -> None:
        """Asks the feed now."""
        url = QUrl(self.source.feed)
        if not self.source.usable:
            self.failed.emit(tr(NO_FEED))
            return
        if url.scheme() != "https" and url.host() not in LOOPBACK:
            self.failed.emit(tr("The update feed's address is not secure: get Slipstream again from its makers."))
            return
        if self._reply is not None:
            return
        self._network = self._network or QNetworkAccessManager(self)
        request = QNetworkRequest(url)
        request.setTransferTimeout(TIMEOUT_MS)
        request.setHeader(QNetworkRequest.KnownHeaders.UserAgentHeader, f"Slipstream/{__version__}")
        self._reply = self._network.get(request)
        self._reply.downloadProgress.connect(self._on_progress)
        self._reply.finished.connect(self._on_finished)

    def stop(self) -> None:
        """Gives up what is being looked up."""
        if self._reply is not None:
            self._reply.abort()

    def _on_progress(self, received: int, _total: int) -> None:
        if received > FEED_LIMIT and self._reply is not None:
            self._reply.abort()

    def _on_finished(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        reply.deleteLater()
        if reply.error() != QNetworkReply.NetworkError.NoError:
            self.failed.emit(tr("The update feed does not answer ({reason}): try again later.", reason=reply.errorString()))
            return
        try:
            release = read_feed(bytes(reply.readAll().data()), self.source.public_key)
        except FeedError as error:
            self.failed.emit(str(error))
            return
        if is_newer(release.version, __version__):
            self.found.emit(release)
        else:
            self.current.emit()
