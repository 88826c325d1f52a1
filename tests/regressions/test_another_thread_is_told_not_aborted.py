"""ml-explore/mlx-lm#1181, ml-explore/mlx#3727: generating off the thread that loaded ended the process or raised about streams."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from engine import GenerationRequest
from engine.engine import Engine
from tests.regressions.pairs import tiny_engine  # noqa: F401


@pytest.mark.parametrize("call", ["generate", "settle", "close"])
def test_every_call_from_another_thread_is_refused_and_the_engine_goes_on(tiny_engine: Engine, call: str) -> None:  # noqa: F811
    refused: list[BaseException] = []
    calls: dict[str, Callable[[], object]] = {
        "generate": lambda: list(tiny_engine.generate(GenerationRequest.of("hello", max_tokens=2))),
        "settle": tiny_engine.settle,
        "close": tiny_engine.close,
    }

    def elsewhere() -> None:
        try:
            calls[call]()
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(refused) == 1 and "belongs to the thread that loaded it" in str(refused[0])
    assert list(tiny_engine.generate(GenerationRequest.of("hello", max_tokens=2)))
