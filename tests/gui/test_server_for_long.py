"""A sweep: programs that ask, stream and leave all the time, while the window chats, loads, unloads and switches its server."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import openai
import pytest

from app.services.engine_client import EngineState
from app.services.server import ServerState
from app.services.wiring import Services
from tests.gui.conftest import wait_ready
from tests.gui.serving import QUESTION, client_of, free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("This plugin does not support"),
    pytest.mark.usefixtures("keychain"),
]
TURNS, PROGRAMS = 24, 5
EXPECTED = {"model_loading", "no_model", "stopping", "unreachable", "streamed", "left", "whole", "listed"}


class Program:
    """One that never rests; ``ends`` counts how its requests ended."""

    def __init__(self, services: Services, seed: int):
        self.ends: Counter[str] = Counter()
        self._client, self._draw = client_of(services), random.Random(seed)

    def run(self, over: threading.Event) -> None:
        with self._client:
            while not over.is_set():
                try:
                    self.ends[self._ask()] += 1
                except openai.APIConnectionError:
                    self.ends["unreachable"] += 1
                except openai.APIError as error:
                    self.ends[str(error.code)] += 1
                time.sleep(0.01)

    def _ask(self) -> str:
        kind = self._draw.choice(["streamed", "left", "whole", "listed"])
        if kind == "listed":
            self._client.models.list()
        elif kind == "whole":
            self._client.chat.completions.create(model="scripted", messages=QUESTION)
        else:
            with self._client.chat.completions.create(model="scripted", messages=QUESTION, stream=True) as stream:
                for number, _chunk in enumerate(stream):
                    if kind == "left" and number > self._draw.randrange(20):
                        break
        return kind


def test_nothing_is_lost_stuck_or_mixed_up(qtbot, window, loader, others, caplog):
    services, draw, over = window.services, random.Random(7), threading.Event()
    server, client = services.server, services.client
    loader.script.tokens, loader.script.rate, loader.script.load_s = 120, 400.0, 0.1
    services.settings.update(server_port=free_port())
    programs = [Program(services, seed) for seed in range(PROGRAMS)]
    running = [others.submit(program.run, over) for program in programs]
    for _ in range(TURNS):
        server.start()
        qtbot.waitUntil(lambda: server.state is ServerState.ON, timeout=20_000)
        qtbot.wait(draw.randrange(500))
        deed = draw.choice(["load", "unload", "ask", "stop", "rest"])
        if deed == "unload":
            client.unload()
        if deed in ("load", "unload"):
            client.load("scripted")
        if deed in ("ask", "stop"):
            window.composer.set_text("Mine")
            window.do.send()
            qtbot.wait(draw.randrange(300))
            if deed == "stop":
                window.do.stop()
        qtbot.wait(draw.randrange(500))
        wait_ready(qtbot, client)
        server.stop()
        if draw.random() < 0.7:
            qtbot.waitUntil(lambda: server.state is ServerState.OFF, timeout=20_000)
    over.set()
    qtbot.waitUntil(lambda: all(each.done() for each in running), timeout=60_000)
    ends = sum((program.ends for program in programs), Counter[str]())
    assert [each.exception() for each in running] == [None] * PROGRAMS
    assert ends.keys() <= EXPECTED and min(ends["streamed"], ends["whole"], ends["left"]) > 0, ends
    assert [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
    assert client.state is EngineState.READY and all(engine.closed for engine in loader.engines[:-1])
    messages = services.conversation.messages
    assert {message.state for message in messages if message.role == "assistant"} <= {"done", "stopped"}
    assert [message.content for message in messages if message.role == "user"] == ["Mine"] * (len(messages) // 2)
