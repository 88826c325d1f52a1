"""The local server: other programs ask the loaded model over HTTP, on a thread of its own that nothing here waits for."""

from __future__ import annotations

import errno
import logging
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtNetwork import QAbstractSocket, QNetworkInterface

from app.core.engine_words import engine_words
from app.core.origins import origins_of
from app.core.words import tr
from app.services.background import Background
from app.services.engine_client import EngineClient
from app.services.server_key import new_key, read_key, save_key
from app.services.settings import Settings, SettingsService
from engine import SlipstreamError

if TYPE_CHECKING:
    from engine.server.journal import Journal
    from engine.server.run import Server

HERE, EVERYWHERE = "127.0.0.1", "0.0.0.0"
QUIT_LIMIT_S = 1.0
OTHER_PORTS = 50  # above the one that is taken
log = logging.getLogger(__name__)


class ServerState(Enum):
    """Whether other programs can ask."""

    OFF = "off"
    STARTING = "starting"
    ON = "on"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the server does not run, in words. ``free_port`` would work instead of the one that is taken."""

    text: str
    free_port: int | None = None


@dataclass(slots=True, eq=False)
class _Run:
    """One start of the server. ``over`` is set on its thread before that ends."""

    settings: Settings
    key: str
    server: Server | None = None
    stopped: bool = False
    problem: Problem | None = None
    over: bool = False
    thread: threading.Thread | None = field(default=None, repr=False)


class LocalServer(QObject):
    """``changed()`` follows ``state``, ``problem`` and ``key``. What it serves is the engine client's business."""

    changed = Signal()
    _told = Signal(object)

    def __init__(self, client: EngineClient, settings: SettingsService, parent: QObject | None = None):
        super().__init__(parent)
        self._client, self._lending, self._settings = client, client.lending, settings
        self._background = Background(self)
        self.state = ServerState.OFF
        self.problem: Problem | None = None
        self.key = ""  # as far as it is known here: it lies in the keychain
        self.key_kept = True  # False: the keychain did not take it, and it is gone with the program
        self.journal: Journal | None = None  # the last requests since the server was started
        self._run: _Run | None = None
        self._again = False
        self._told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)

    # What the user does

    def start(self) -> None:
        """Begins to serve; where it is still stopping, as soon as that is over."""
        if self.state is ServerState.STOPPING:
            self._again = True
        if self.state is not ServerState.OFF:
            return
        self._again, self.problem = False, None
        self._run = run = _Run(self._settings.current, self.key)
        run.thread = threading.Thread(target=self._serve, args=(run,), name="server", daemon=True)
        self._set(ServerState.STARTING)
        run.thread.start()

    def stop(self) -> None:
        """Ends the open answer where it is, refuses those that wait and takes no more."""
        self._again = False
        run = self._run
        if run is None or self.state is ServerState.STOPPING:
            return
        run.stopped = True
        if run.server is not None:
            run.server.stop()
        self._lending.serve(None)
        self._set(ServerState.STOPPING)

    def start_with_program(self) -> None:
        """Starts where the user wants it with the program."""
        if self._settings.current.server_at_start:
            self.start()

    def use_port(self, port: int) -> None:
        """Takes another port and starts."""
        self._settings.update(server_port=port)
        self.start()

    def make_key(self) -> None:
        """Makes a new key and asks for it from the next start on."""
        self.key = key = new_key()
        self._settings.update(server_key=True)
        self.changed.emit()
        self._background.run(lambda: save_key(key), self._on_saved, lambda _error: self._on_saved(False), "keychain")

    def ask_for_key(self) -> None:
        """Asks for the kept key from the next start on, and makes one where none is kept: programs may have an old one."""
        self._settings.update(server_key=True)
        if not self.key:
            self._background.run(read_key, self._on_asked, lambda _error: self.make_key(), "keychain")

    def find_key(self) -> None:
        """Reads the key, which takes a while; ``changed`` follows where there is one."""
        if not self.key and self._settings.current.server_key:
            self._background.run(read_key, self._on_key, lambda error: log.warning("%s", error), "keychain")

    def shutdown(self, limit_s: float = QUIT_LIMIT_S) -> bool:
        """Waits up to ``limit_s`` seconds after ``stop`` and the engine's end. False: something is still being sent."""
        self.stop()
        run = self._run
        if run is not None and run.thread is not None:
            run.thread.join(limit_s)
            if run.server is not None:
                run.server.stop(at_once=True)
            run.thread.join(limit_s)
        return self._background.close(limit_s) and (run is None or run.over)

    # What is told

    @property
    def wanted(self) -> bool:
        """Whether it serves or is about to."""
        return self._again or self.state in (ServerState.STARTING, ServerState.ON)

    @property
    def url(self) -> str:
        """The base URL for clients, as of now or of the next start; with another computer's eyes where those may ask."""
        settings = self._run.settings if self._run is not None else self._settings.current
        host = (network_address() or HERE) if settings.server_open else HERE
        return f"http://{host}:{settings.server_port}/v1"

    # How it runs

    def _serve(self, run: _Run) -> None:
        """On the server's thread, imports and all: none of them may stop the window."""
        try:
            self._listen(run)
        except SlipstreamError as error:
            run.problem = Problem(engine_words(str(error)), self._free_port(run, error))
        except Exception as error:
            log.exception("the server ended")
            run.problem = Problem(tr("The server ended ({kind}): start it again; the details are in the log.",
                                     kind=type(error).__name__))  # fmt: skip
        finally:
            run.over = True
            self._tell(run)

    def _listen(self, run: _Run) -> None:
        from engine.server.run import Server
        from engine.server.settings import WINDOW_ADVICE, ServerSettings, bind, listen

        wanted = run.settings
        run.key = (run.key or read_key()) if wanted.server_key else ""
        if (wanted.server_key or wanted.server_open) and not run.key:
            raise SlipstreamError(tr("The server's key is not in the keychain: make a new one in the settings, under Server."))
        host = _host(wanted)
        with bind(host, wanted.server_port) as bound:
            listen(bound)
            settings = ServerSettings(
                host=host, local_only=not wanted.server_open, api_key=run.key or None, origins=origins_of(wanted.server_origins),
                advice=WINDOW_ADVICE,
            )  # fmt: skip
            run.server = server = Server(settings, self._lending.see, self._lending.call)
            if run.stopped:
                return
            self._lending.serve(server.desk)
            self._tell(run)
            server.run(bound)

    def _free_port(self, run: _Run, error: SlipstreamError) -> int | None:
        from engine.server.settings import bind, listen

        if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EADDRINUSE:
            return None
        first = run.settings.server_port + 1
        for port in range(first, min(first + OTHER_PORTS, 65_536)):
            try:
                with bind(_host(run.settings), port) as bound:  # not everywhere: a firewall would ask the user about that
                    listen(bound)
            except SlipstreamError:
                continue
            return port
        return None

    def _tell(self, run: _Run) -> None:
        try:
            self._told.emit(run)
        except RuntimeError:
            log.debug("the program ended before the server did")  # the Qt object is gone, and nobody waits

    @Slot(object)
    def _on_told(self, run: _Run) -> None:
        if run is not self._run:
            return
        if run.over:
            self._run, self.problem = None, run.problem
            self._lending.serve(None)
            self._set(ServerState.OFF)
            if self._again:
                self.start()
        elif self.state is ServerState.STARTING and run.server is not None:
            self.key, self.journal = run.key or self.key, run.server.journal
            self._client.pause_learning()
            self._set(ServerState.ON)

    def _on_saved(self, kept: bool) -> None:
        self.key_kept = kept
        self.changed.emit()

    def _on_asked(self, key: str) -> None:
        if key or self.key:
            self._on_key(key)
        else:
            self.make_key()

    def _on_key(self, key: str) -> None:
        self.key = self.key or key
        self.changed.emit()

    def _set(self, state: ServerState) -> None:
        self.state = state
        self.changed.emit()


def _host(settings: Settings) -> str:
    return EVERYWHERE if settings.server_open else HERE


def network_address() -> str:
    """This computer's address for others in its network, "" where it has none."""
    for interface in QNetworkInterface.allInterfaces():
        flags = interface.flags()
        if not flags & QNetworkInterface.InterfaceFlag.IsRunning or flags & QNetworkInterface.InterfaceFlag.IsLoopBack:
            continue
        for entry in interface.addressEntries():
            if entry.ip().protocol() is QAbstractSocket.NetworkLayerProtocol.IPv4Protocol and not entry.ip().isLinkLocal():
                return entry.ip().toString()
    return ""
