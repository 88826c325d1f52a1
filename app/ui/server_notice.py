"""The window's side of the local server: the sign in the meter, what went wrong, and the word to who waits for its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.words import tr
from app.services.engine_client import EngineState
from app.services.server import LocalServer, Problem, ServerState

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ServerNotice(QObject):
    """Follows ``LocalServer`` and whoever waits for it."""

    def __init__(self, window: MainWindow, server: LocalServer):
        super().__init__(window)
        self._window, self._server = window, server
        self._told: Problem | None = None
        server.changed.connect(self._show)
        window.services.client.state_changed.connect(self._on_state)
        window.meter.server_asked.connect(self._open)

    def _show(self) -> None:
        server, window = self._server, self._window
        window.meter.show_server(server.url if server.state is ServerState.ON else "")
        problem, told = server.problem, self._told
        self._told = problem
        if problem is not None and problem is not told:
            port = problem.free_port
            if port is None:
                window.banner.show_message(problem.text, tr("Server Settings"), self._open, until="served")
            else:
                text = tr("Use Port {port}", port=str(port))
                window.banner.show_message(problem.text, text, lambda: server.use_port(port), until="served")
        elif problem is None:
            window.banner.settle("served")
        window.update_commands()

    def _open(self) -> None:
        self._window.do.show_settings(server=True)

    def _on_state(self, state: EngineState) -> None:
        banner = self._window.banner
        if state is EngineState.WAITING:
            banner.show_notice(tr("An answer for another program is being written: yours is next."), until="turn")
        else:
            banner.settle("turn")
