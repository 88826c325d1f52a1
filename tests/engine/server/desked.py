"""A desk on a thread of its own, with an engine whose answers are written down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from starlette.testclient import TestClient

from engine import Finished, GenerationRequest, ModelError, PairInfo, RequestError, Started, Statistics, TextDelta
from engine.server.api import Api
from engine.server.desk import Desk, Failed, Item, Job
from engine.server.journal import Journal
from engine.server.metrics import Metrics
from engine.server.settings import ServerSettings

NUMBERS = Statistics("baseline", 3, 0, 1, 0.1, 0.0, 0, 0, 0, 0.0, 0.0, 0, None)


class Scripted:
    """Answers each prompt by its own text; "broken" breaks in the middle, "bug" is our fault, "long" ends only when cancelled,
    and counting "huge" takes until ``counted``."""

    stop_ids: frozenset[int] = frozenset()
    tool_syntax = None

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.long = threading.Event()
        self.counting, self.counted = threading.Event(), threading.Event()
        self.info = PairInfo("p", "P", "f", "cpu", "f32", 99, None, 0, None, 1)

    def token_bytes(self) -> dict[int, bytes]:
        return {}

    def check(self, request: GenerationRequest) -> int:
        if request.messages[0].content == "huge":
            self.counting.set()
            assert self.counted.wait(20)
        if request.messages[0].content == "bad":
            raise RequestError("top_p is 7: choose another.")
        return 3

    def settle(self) -> bool:
        raise ValueError("preparing must not end the desk")

    def generate(self, request: GenerationRequest, cancel: threading.Event) -> Iterator[Any]:
        text = request.messages[0].content
        self.answered.append(text)
        yield Started("baseline", 3, 0, 0, 0.1)
        yield TextDelta(text, (1,), 0.1)
        if text == "broken":
            raise ModelError("The model's numbers are no numbers: load it again.")
        if text == "bug":
            raise ZeroDivisionError
        while text == "long" and not cancel.is_set():
            self.long.set()
            cancel.wait(0.005)
            yield TextDelta(".", (2,), 0.2)
        yield Finished("cancelled" if cancel.is_set() else "stop", text, (1,), NUMBERS)


class Desked:
    """A desk on a thread of its own."""

    def __init__(self, max_waiting: int = 8) -> None:
        self.engine, self.metrics, self.stop = Scripted(), Metrics(), threading.Event()
        self.journal = Journal()
        self.desk = Desk(max_waiting, self.metrics.see)
        self.desk.use(self.engine)  # type: ignore[arg-type]
        self.metrics.watch(self.desk)
        self.thread = threading.Thread(target=self.desk.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def submit(self, text: str) -> tuple[Job, list[Item], threading.Event]:
        items: list[Item] = []
        ended = threading.Event()

        def deliver(item: Item) -> None:
            items.append(item)
            if isinstance(item, Finished | Failed):
                ended.set()

        job = Job(GenerationRequest.of(text), deliver)
        self.desk.submit(job)
        return job, items, ended

    def client(self) -> TestClient:
        settings = ServerSettings("testserver", local_only=True)
        return TestClient(Api(self.desk, self.metrics, settings, self.journal).application(), raise_server_exceptions=False)


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}
