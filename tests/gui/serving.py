"""What the tests of the window's server share: a keychain that can be locked, other programs on threads, and the server on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx2
import openai
from keyring.errors import KeyringLocked

from app.services.server import LocalServer, ServerState
from app.services.wiring import Services
from tests.gui.downloading import MemoryKeychain

QUESTION: Any = [{"role": "user", "content": "Explain how rainbows form."}]
PATIENCE_S = 30.0


class Keychain(MemoryKeychain):
    """``locked`` refuses everything."""

    locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        super().set_password(service, username, password)

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def switch_on(qtbot, services: Services, port: int = 0) -> None:
    services.settings.update(server_port=port or free_port())
    services.server.start()
    qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)


def switch_off(qtbot, server: LocalServer) -> None:
    server.stop()
    qtbot.waitUntil(lambda: server.state is ServerState.OFF, timeout=10_000)


def client_of(services: Services, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(**{"base_url": services.server.url, "api_key": "any", "max_retries": 0, "timeout": PATIENCE_S} | more)


def ask(services: Services, **more: Any) -> Callable[[], Any]:
    """A question of another program; the answer, or the error that came instead."""

    def run() -> Any:
        try:
            with client_of(services) as client:
                return client.chat.completions.create(model=more.pop("model", "scripted"), messages=QUESTION, **more)
        except openai.APIError as error:
            return error

    return run


def answer_of(qtbot, asked: Future) -> Any:
    qtbot.waitUntil(asked.done, timeout=20_000)
    return asked.result()


def slow(loader, tokens: int = 4_000, rate: float = 50.0) -> None:
    loader.script.tokens, loader.script.rate = tokens, rate


def get(services: Services, path: str) -> httpx2.Response:
    return httpx2.get(services.server.url.removesuffix("/v1") + path, timeout=PATIENCE_S, trust_env=False)


def get_waiting(services: Services) -> int:
    """How many requests wait, by the desk itself: a question over HTTP would stop this thread."""
    desk = services.client.lending._desk
    return desk.waiting if desk is not None else -1
