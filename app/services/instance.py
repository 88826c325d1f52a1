"""One window per data folder: a second start raises the first one's window and leaves."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

RAISE = b"raise\n"
ANSWER_MS = 2_000


class SingleInstance(QObject):
    """Holds the lock of one data folder. ``raise_requested`` fires when another start asked for this window."""

    raise_requested = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None):
        super().__init__(parent)
        self._lock = QLockFile(str(folder / "slipstream.lock"))
        # 0: age alone never makes a lock stale; Qt still breaks the lock of a process that is gone.
        self._lock.setStaleLockTime(0)
        self._server: QLocalServer | None = None
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        # A short name in the user's own temporary folder: socket paths longer than about 100 bytes are refused.
        self._name = str(Path(tempfile.gettempdir()) / f"slipstream-{digest}")

    def acquire(self) -> bool:
        """True: this process is the first for the folder and listens for others. Raises ``OSError`` where it cannot write there."""
        if not self._lock.tryLock(0):
            if self._lock.error() is QLockFile.LockError.LockFailedError:
                return False
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(Path(self._lock.fileName()).parent))
        QLocalServer.removeServer(self._name)  # left by a process that was killed; ours to remove, we hold the lock
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        self._server.listen(self._name)
        return True

    def raise_first(self) -> bool:
        """Asks the first instance to show its window. False: it holds the lock but does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(ANSWER_MS):
            return False
        socket.write(RAISE)
        socket.waitForBytesWritten(ANSWER_MS)
        answered = socket.waitForReadyRead(ANSWER_MS)
        socket.disconnectFromServer()
        return answered

    def release(self) -> None:
        """Lets the next start be the first again."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    def _on_connection(self) -> None:
        while self._server is not None and (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(lambda socket=socket: self._on_ready(socket))
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._on_ready(socket)

    def _on_ready(self, socket: QLocalSocket) -> None:
        if bytes(socket.readAll().data()).startswith(RAISE):
            socket.write(b"ok\n")
            socket.flush()
            self.raise_requested.emit()
