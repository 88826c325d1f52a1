"""How much MLX may hold on to, and what macOS must not page out. A Mac's calls are stood in for: none can be made here."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import psutil
import pytest

from engine import GenerationRequest, TextDelta, memory
from engine.engine import Engine

RECOMMENDED = 10**10


@pytest.fixture
def kept_limit() -> Iterator[None]:
    before = mx.set_cache_limit(0)
    yield
    mx.set_cache_limit(before)


@pytest.mark.parametrize(("gigabytes", "expected"), [(8, 2**29), (16, 2**30), (32, 2 * 2**30), (512, 2 * 2**30)])
def test_a_gpu_keeps_a_small_share_of_the_memory_as_freed_buffers(
    kept_limit: None, monkeypatch: pytest.MonkeyPatch, gigabytes: int, expected: int
) -> None:
    machine = psutil.virtual_memory()._replace(total=gigabytes * 2**30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu, 0))
    memory.limit_cache()
    assert mx.set_cache_limit(0) == expected
    memory.limit_cache(training=True)
    assert mx.set_cache_limit(0) == gigabytes * 2**28, "a step's arrays are those of the next"


@pytest.mark.parametrize("training", [False, True])
def test_the_cpu_keeps_few_freed_buffers(kept_limit: None, training: bool) -> None:
    memory.limit_cache(training)
    assert mx.set_cache_limit(0) == memory.CPU_CACHE_BYTES


@pytest.fixture
def wired(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits that a Mac would have been given, in order; 0 is the one from before."""
    limits = [0]

    def change(limit: int) -> int:
        limits.append(limit)
        return limits[-2]

    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    monkeypatch.setattr(mx, "device_info", lambda: {"max_recommended_working_set_size": RECOMMENDED})
    monkeypatch.setattr(mx, "set_wired_limit", change)
    return limits


def test_the_model_is_kept_resident_for_an_answer_and_no_longer(engine: Engine, wired: list[int]) -> None:
    list(engine.generate(GenerationRequest.of("Hello", max_tokens=4, use_cache=False)))
    assert wired == [0, RECOMMENDED, 0]


def test_an_answer_that_is_abandoned_releases_the_model_too(engine: Engine, wired: list[int]) -> None:
    events = engine.generate(GenerationRequest.of("Hello", max_tokens=40, use_cache=False))
    next(event for event in events if isinstance(event, TextDelta))
    assert wired == [0, RECOMMENDED]
    events.close()
    assert wired == [0, RECOMMENDED, 0]


def test_where_there_is_no_metal_nothing_is_asked_for(engine: Engine, wired: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.metal, "is_available", lambda: False)
    list(engine.generate(GenerationRequest.of("Hello", max_tokens=2, use_cache=False)))
    assert wired == [0]
