"""Clients that open connections and leave them: others are answered all the same, and the files they take stay few."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx2
import pytest

from engine.server import connections
from engine.server.run import Server
from engine.server.settings import ServerSettings, address, bind, listen
from tests.engine.server.desked import Scripted, ask

MOST = 20
HALF = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"


def wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Running:
    """A server without a model, on a thread."""

    def __init__(self) -> None:
        self.bound = bind("127.0.0.1", 0)
        listen(self.bound)
        self.url, self.port = address(self.bound), self.bound.getsockname()[1]
        self.server = Server(ServerSettings(host="127.0.0.1", local_only=True))
        self.thread = threading.Thread(target=self.server.run, args=(self.bound,))
        self.thread.start()
        self.open: list[socket.socket] = []

    def connect(self, said: bytes = b"") -> socket.socket:
        self.open.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))
        self.open[-1].sendall(said)
        return self.open[-1]

    def count(self) -> int:
        return len(self.server._http.server_state.connections)

    def end(self) -> None:
        self.server.stop(at_once=True)
        self.thread.join(20)
        for each in (*self.open, self.bound):
            each.close()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(connections, "MOST", MOST)
    made = Running()
    yield made
    made.end()


@pytest.mark.parametrize("said", [b"", b"GET /health HTT", HALF], ids=["silent", "half a head", "half a body"])
def test_connections_that_ask_nothing_make_room_for_who_asks(running: Running, said: bytes) -> None:
    for _ in range(4 * MOST):
        running.connect(said)
    assert httpx2.get(f"{running.url}/health", timeout=20, trust_env=False).status_code == 200
    wait(lambda: running.count() <= MOST)


def test_one_that_is_kept_and_used_stays_while_idle_ones_come(running: Running) -> None:
    used = running.connect()
    for _ in range(3 * MOST):
        used.sendall(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert used.recv(65_536).startswith(b"HTTP/1.1 200")
        running.connect()
    wait(lambda: running.count() <= MOST)


@pytest.mark.parametrize("said", [b"", b"GET /health HTT", HALF], ids=["silent", "half a head", "half a body"])
def test_one_that_says_nothing_for_long_is_closed(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr("engine.server.run.IDLE_CONNECTION_S", 0.2)
    running = Running()
    try:
        running.connect(said)
        wait(lambda: running.count() == 1)
        wait(lambda: running.count() == 0)
    finally:
        running.end()


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stop_leaves_who_does_not_send_or_read_to_the_end_and_complains_of_nobody(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    monkeypatch.setattr(connections, "CLOSE_S", 1 if not at_once else 60)
    desk = running.server.desk
    desk.use(Scripted())  # type: ignore[arg-type]
    running.connect(HALF)
    body = json.dumps(ask("x" * 900_000, stream=True)).encode()  # more than the system takes for one that does not read
    running.connect(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    wait(desk.step)
    wait(lambda: len(running.server.journal.entries()) == 2)
    running.server.stop(at_once)
    running.thread.join(20)
    assert not running.thread.is_alive()
    assert not caplog.records, caplog.text
    assert not any(entry.open for entry in running.server.journal.entries())


def test_connections_take_a_part_of_the_files_that_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 256))
    assert connections.most_connections() == 64
