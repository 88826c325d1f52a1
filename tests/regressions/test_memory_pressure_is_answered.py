"""jundot/omlx#1372: memory ran out while an answer was written, and the machine went down with it.

A simulated level of the system stands for macOS's own, which cannot be raised in a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Fallback, Finished, GenerationRequest, LoadOptions, load, pressure
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, write_target


@pytest.fixture
def engine(tmp_path: Path, starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(pressure, "EVERY_S", 0.0)
    folder = copy_tokenizer(starter.target, write_target(tmp_path / "target", vocab_size=49152, max_position_embeddings=8192))
    loaded = load(str(folder), options=LoadOptions(prefix_disk_bytes=0))
    yield loaded
    loaded.close()


def answer(engine: Engine, text: str) -> tuple[Finished, list[str]]:
    """The end of an answer, and the reasons of what was told before it."""
    events = list(engine.generate(GenerationRequest.of(text, mode="baseline", max_tokens=40)))
    assert isinstance(events[-1], Finished)
    return events[-1], [event.reason for event in events if isinstance(event, Fallback)]


def test_under_a_warning_what_only_saves_time_is_given_up_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "word " * (2 * engine.prefill_chunk)
    answer(engine, text)
    assert answer(engine, text)[0].statistics.cached_tokens > 0
    shed: list[bool] = []
    drop = engine._prefix.shed
    monkeypatch.setattr(engine._prefix, "shed", lambda: (shed.append(True), drop()))
    monkeypatch.setattr(pressure, "system_pressure", lambda: "warning")
    end, told = answer(engine, "something short")
    assert (end.reason, len(end.token_ids), told, shed) == ("length", 40, [], [True])
    monkeypatch.setattr(pressure, "system_pressure", lambda: "normal")
    assert answer(engine, text)[0].statistics.cached_tokens == 0


def test_at_a_critical_level_the_answer_stops_with_what_it_has(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = iter(["normal"] * 12)
    monkeypatch.setattr(pressure, "system_pressure", lambda: next(levels, "critical"))
    end, told = answer(engine, "something short")
    assert end.reason == "cancelled" and 0 < len(end.token_ids) < 40
    assert told == [pressure.STOPPED]
    monkeypatch.setattr(pressure, "system_pressure", lambda: "normal")
    assert answer(engine, "something short")[0].reason == "length"
    seen = iter(["normal"] * events_of(engine))
    monkeypatch.setattr(pressure, "system_pressure", lambda: next(seen, "critical"))
    assert answer(engine, "something short")[0].reason == "length", "an answer that is over is not stopped"


def events_of(engine: Engine) -> int:
    """How often an answer lets the level be looked at."""
    return len(list(engine.generate(GenerationRequest.of("something short", mode="baseline", max_tokens=40)))) - 1
