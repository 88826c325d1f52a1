"""Runs the server: HTTP on one thread, the engine's queue on the engine's, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import cast

import uvicorn

from engine.server.api import Api
from engine.server.connections import CLOSE_S, Connection
from engine.server.desk import Desk, Seen
from engine.server.journal import Journal
from engine.server.loaded import Servable
from engine.server.metrics import Metrics
from engine.server.settings import ServerSettings, listen

HURRY_S = 1  # after which uvicorn ends by force what does not end although its connection is closed
AT_ONCE = 128  # connections taken in one go, before the first of them can be turned away
IDLE_CONNECTION_S = 75  # longer than clients keep theirs, so that none sends a request into a connection that closes


class Server:
    """A desk with HTTP before it. ``run`` belongs to a thread of its own, the desk to the engine's; ``stop`` is for all.

    ``watch`` sees every answer, as ``Desk`` does; ``on_work`` is the desk's.
    """

    def __init__(
        self,
        settings: ServerSettings,
        watch: Callable[[Seen], None] = lambda seen: None,
        on_work: Callable[[], None] = lambda: None,
    ):
        metrics, self.journal = Metrics(), Journal()

        def see(seen: Seen) -> None:
            metrics.see(seen)
            watch(seen)

        self.desk = Desk(settings.max_waiting, see, on_work)
        metrics.watch(self.desk)
        config = uvicorn.Config(
            Api(self.desk, metrics, settings, self.journal).application(), loop="asyncio", http=Connection, ws="none",
            lifespan="off", log_config=None, access_log=False, log_level="error", server_header=False,
            timeout_keep_alive=IDLE_CONNECTION_S, timeout_graceful_shutdown=CLOSE_S + HURRY_S, backlog=AT_ONCE,
        )  # fmt: skip
        self._http = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, bound: socket.socket) -> None:
        """Answers HTTP on ``bound``, which listens, until ``stop``; raises what ended it otherwise."""
        try:
            asyncio.run(self._serve(bound))
        finally:
            self.desk.close()

    def stop(self, at_once: bool = False) -> None:
        """Takes no more; what is being sent is sent, unless ``at_once``, for up to ``CLOSE_S`` seconds. Returns at once."""
        self.desk.close()
        self._http.should_exit = True
        if at_once and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: it is over
                self._loop.call_soon_threadsafe(self._leave_all)

    async def _serve(self, bound: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        await self._http.serve([bound])

    def _leave_all(self) -> None:
        for connection in list(self._http.server_state.connections):
            cast(Connection, connection).leave()


def serve(
    engine: Servable, bound: socket.socket, settings: ServerSettings, ready: Callable[[], None], stop: threading.Event
) -> None:
    """Serves ``engine``, which the calling thread owns, on ``bound`` until ``stop`` is set; ``ready`` is called once it listens.

    Then the open answer ends where it is, those that wait are refused, and what is being sent is sent. Raises
    ``SlipstreamError`` where the socket cannot be used, and what ended HTTP where that ended by itself.
    """
    server, failures = Server(settings), list[BaseException]()
    server.desk.use(engine)
    listen(bound)

    def run_http() -> None:
        try:
            server.run(bound)
        except BaseException as error:
            failures.append(error)
        finally:
            stop.set()

    http = threading.Thread(target=run_http, name="http")
    http.start()
    try:
        ready()
        server.desk.run(stop)
    finally:
        server.stop()
        http.join()
    if failures:
        raise failures[0]
