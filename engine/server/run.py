"""Runs the server: HTTP on a thread of its own, the engine's queue on the calling one, until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

import uvicorn

from engine.engine import Engine
from engine.server.api import Api, Loaded
from engine.server.desk import Desk
from engine.server.metrics import Metrics
from engine.server.settings import ServerSettings, listen

CLOSE_S = 5  # for what is being sent when the server stops
IDLE_CONNECTION_S = 75  # longer than clients keep theirs, so that none sends a request into a connection that closes


def serve(engine: Engine, bound: socket.socket, settings: ServerSettings, ready: Callable[[], None], stop: threading.Event) -> None:
    """Serves ``engine``, which the calling thread owns, on ``bound`` until ``stop`` is set; ``ready`` is called once it listens.

    Then the open answer ends where it is, those that wait are refused, and what is being sent is sent. Raises
    ``SlipstreamError`` where the socket cannot be used, and what ended HTTP where that ended by itself.
    """
    metrics = Metrics()
    desk = Desk(engine, settings.max_waiting, metrics.answered)
    metrics.watch(desk)
    application = Api(Loaded.of(engine), desk, metrics, settings).application()
    listen(bound)
    config = uvicorn.Config(
        application, loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None, access_log=False, log_level="error",
        server_header=False, timeout_keep_alive=IDLE_CONNECTION_S, timeout_graceful_shutdown=CLOSE_S,
    )  # fmt: skip
    server, failures = uvicorn.Server(config), list[BaseException]()

    def run_http() -> None:
        try:
            asyncio.run(server.serve([bound]))
        except BaseException as error:
            failures.append(error)
        finally:
            stop.set()

    http = threading.Thread(target=run_http, name="http")
    http.start()
    try:
        ready()
        desk.run(stop)
    finally:
        server.should_exit = True
        http.join()
    if failures:
        raise failures[0]
