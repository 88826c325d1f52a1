"""ml-explore/mlx-lm#1757, waybarrios/vllm-mlx#743: the memory of a model that was unloaded or left stayed taken."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from app.services.engine_client import EngineClient, EngineState
from app.worker import load_engine
from tests.gui.conftest import delete_later, wait_ready


def resident() -> int:
    return psutil.Process().memory_info().rss


@pytest.fixture
def client(qtbot, starter) -> Iterator[EngineClient]:
    made = EngineClient(load_engine)
    yield made
    assert made.shutdown(30.0)
    delete_later(made)


def test_the_real_pair_s_weights_leave_the_process(qtbot, client):
    after: list[int] = []
    for _ in range(3):
        client.load("starter")
        wait_ready(qtbot, client, 120_000)
        loaded, weights = resident(), client.info.weights_bytes
        client.unload()
        qtbot.waitUntil(lambda: client.state is EngineState.NO_MODEL, timeout=30_000)
        after.append(resident())
        assert loaded - after[-1] > 0.8 * weights
    assert after[-1] - after[0] < 0.3 * weights  # what allocators keep comes and goes by a tenth
