"""The thread border: order, states, cancelling, late results, failures and shutting down, over the scripted engine."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QTimer

from app.services.engine_client import EngineClient, EngineState, Timed
from engine import Finished, GenerationRequest, Message, ModelError, PrefillProgress, Started, TextDelta
from tests.gui.conftest import delete_later, load, wait_ready

HELLO = GenerationRequest.of("Hello")


class Recorder:
    """Keeps what a client announces."""

    def __init__(self, client: EngineClient):
        self.states, self.events, self.ended, self.batches, self.counted = [], [], [], 0, []
        client.state_changed.connect(self.states.append)
        client.events.connect(self._on_events)
        client.ended.connect(lambda request_id, failure: self.ended.append((request_id, failure)))
        client.counted.connect(self.counted.append)

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        self.batches += 1
        self.events.extend((request_id, timed.event) for timed in events)

    def of(self, kind: type) -> list:
        return [event for _id, event in self.events if isinstance(event, kind)]


def test_an_answer_arrives_whole_and_in_order_and_ends_once(qtbot, client):
    load(qtbot, client)
    seen = Recorder(client)
    request_id = client.generate(HELLO)
    wait_ready(qtbot, client)
    kinds = [type(event) for _id, event in seen.events]
    assert kinds[0] is PrefillProgress and kinds[-1] is Finished
    assert "".join(delta.text for delta in seen.of(TextDelta)) == seen.of(Finished)[0].text
    assert seen.ended == [(request_id, None)]
    assert seen.states == [EngineState.PREFILL, EngineState.DECODING, EngineState.READY]


def test_the_engine_settles_while_nothing_is_asked_for_and_a_request_comes_first(qtbot, client, loader):
    loader.script.settle_steps = 10**9
    load(qtbot, client)
    client.generate(HELLO)
    wait_ready(qtbot, client)
    engine = loader.engines[-1]
    qtbot.waitUntil(lambda: engine.settled > 3, timeout=20_000)
    client.generate(HELLO)
    wait_ready(qtbot, client)
    assert len(engine.requests) == 2
    loader.script.settle_steps = 0
    qtbot.waitUntil(lambda: engine.settled > 0, timeout=20_000)


def test_a_fault_while_settling_is_logged_and_ends_it(qtbot, client, loader, caplog):
    loader.script.settle_error = RuntimeError("scripted")
    load(qtbot, client)
    client.generate(HELLO)
    wait_ready(qtbot, client)
    engine = loader.engines[-1]
    qtbot.waitUntil(lambda: "preparing for the next turn failed" in caplog.text, timeout=20_000)
    client.generate(HELLO)
    wait_ready(qtbot, client)
    assert len(engine.requests) == 2


def test_loading_reports_its_steps_and_the_pair(qtbot, client):
    steps, pairs = [], []
    client.loading.connect(steps.append)
    client.loaded.connect(pairs.append)
    load(qtbot, client)
    assert [step.fraction for step in steps] == [0.0, 0.25, 0.5, 0.75]
    assert pairs == [client.info] and client.info.draft_name == "scripted draft"


def test_a_fast_engine_costs_a_signal_a_frame_not_a_signal_a_token(qtbot, client, loader):
    loader.script.tokens, loader.script.rate = 400, 800.0
    load(qtbot, client)
    seen, began = Recorder(client), time.monotonic()
    client.generate(HELLO)
    wait_ready(qtbot, client)
    assert len(seen.events) > 200
    assert seen.batches <= (time.monotonic() - began) / 0.033 + 8


def test_the_first_text_does_not_wait_for_a_frame(qtbot, client, loader):
    load(qtbot, client)
    loader.script.rate = 20.0
    qtbot.waitUntil(lambda: not client._timer.isActive(), timeout=20_000)
    client._timer.setInterval(60_000)  # a frame this long would be noticed
    moments = []
    client.events.connect(lambda _id, events: moments.append(time.monotonic() - events[0].at))
    client.generate(HELLO)
    qtbot.waitUntil(lambda: bool(moments), timeout=20_000)
    client._timer.setInterval(33)
    client.stop()
    wait_ready(qtbot, client)
    assert moments[0] < 10.0


def test_a_crash_becomes_one_bug_report_and_the_thread_lives_on(qtbot, client, loader, caplog):
    loader.script.crash_at = 10
    load(qtbot, client)
    seen = Recorder(client)
    client.generate(HELLO)
    qtbot.waitUntil(lambda: bool(seen.ended), timeout=20_000)
    failure = seen.ended[0][1]
    assert failure.is_bug and "scripted crash" in failure.details
    assert client.state is EngineState.LOST and "scripted crash" in caplog.text
    loader.script.crash_at = None
    load(qtbot, client)
    client.generate(HELLO)
    wait_ready(qtbot, client)
    assert seen.of(Finished) and loader.engines[0].closed


def test_what_the_user_can_mend_is_no_bug_and_keeps_the_engine(qtbot, client, loader):
    loader.script.context_length = 10
    load(qtbot, client)
    seen = Recorder(client)
    client.generate(GenerationRequest.of("word " * 50))
    qtbot.waitUntil(lambda: bool(seen.ended), timeout=20_000)
    failure = seen.ended[0][1]
    assert failure.is_overflow and not failure.is_bug and "start a new chat" in failure.message
    assert client.state is EngineState.READY


def test_a_pair_that_cannot_be_loaded_says_why(qtbot, client, loader):
    loader.script.load_error = ModelError("The draft belongs to another model: choose another pair.")
    failures = []
    client.load_failed.connect(failures.append)
    client.load("broken")
    qtbot.waitUntil(lambda: bool(failures), timeout=20_000)
    assert failures[0].message.startswith("The draft belongs") and client.state is EngineState.NO_MODEL


def slow(loader, phase: str) -> None:
    loader.script.load_s = 30.0 if phase == "load" else 0.0
    loader.script.prefill_s = 30.0 if phase == "prefill" else 0.0
    loader.script.rate, loader.script.tokens = (5.0, 1_000) if phase == "decode" else (0.0, 40)


def begin(qtbot, client: EngineClient, loader, phase: str) -> None:
    """Brings the client into the middle of ``phase``."""
    if phase == "load":
        slow(loader, phase)
        client.load("scripted")
        qtbot.waitUntil(lambda: client.state is EngineState.LOADING)
        return
    load(qtbot, client)
    slow(loader, phase)
    client.generate(HELLO)
    wanted = EngineState.PREFILL if phase == "prefill" else EngineState.DECODING
    # The state is PREFILL at once; what the worker has not begun yet would be dropped without a wait.
    qtbot.waitUntil(lambda: client.state is wanted and client._job.begun, timeout=20_000)


@pytest.mark.parametrize("phase", ["load", "prefill", "decode"])
def test_stop_acts_in_every_phase(qtbot, client, loader, phase):
    begin(qtbot, client, loader, phase)
    began = time.monotonic()
    client.stop()
    assert client.state is EngineState.STOPPING
    after = EngineState.NO_MODEL if phase == "load" else EngineState.READY
    qtbot.waitUntil(lambda: client.state is after, timeout=20_000)
    assert time.monotonic() - began < 5.0


@pytest.mark.parametrize("phase", ["load", "prefill", "decode"])
def test_shutting_down_in_every_phase_ends_the_thread(qtbot, loader, phase):
    client = EngineClient(loader)
    begin(qtbot, client, loader, phase)
    began = time.monotonic()
    assert client.shutdown(20.0)
    assert time.monotonic() - began < 5.0
    assert all(engine.closed for engine in loader.engines)
    delete_later(client)


def test_late_results_of_a_superseded_request_are_dropped(qtbot, client, loader):
    release = threading.Event()
    load(qtbot, client)
    loader.script.stall_at, loader.script.deaf_stall = 5, release
    seen = Recorder(client)
    first = client.generate(HELLO)
    qtbot.waitUntil(lambda: bool(seen.of(Started)), timeout=20_000)
    second = client.generate(HELLO)
    before = len([1 for request_id, _event in seen.events if request_id == first])
    loader.script.stall_at = None
    release.set()
    wait_ready(qtbot, client)
    assert len([1 for request_id, _event in seen.events if request_id == first]) == before
    assert [request_id for request_id, _failure in seen.ended] == [first, second]


def test_an_engine_that_does_not_stop_is_called_lost_until_it_comes_back(qtbot, client, loader):
    release = threading.Event()
    client._patience.setInterval(100)
    load(qtbot, client)
    loader.script.stall_at, loader.script.deaf_stall = 5, release
    client.generate(HELLO)
    qtbot.waitUntil(lambda: client.state is EngineState.DECODING, timeout=20_000)
    client.stop()
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=20_000)
    release.set()
    wait_ready(qtbot, client)


def test_shutting_down_a_deaf_engine_gives_up_after_its_limit(qtbot, loader):
    client, release = EngineClient(loader), threading.Event()
    load(qtbot, client)
    loader.script.stall_at, loader.script.deaf_stall = 5, release
    client.generate(HELLO)
    qtbot.waitUntil(lambda: client.state is EngineState.DECODING, timeout=20_000)
    began = time.monotonic()
    assert client.shutdown(0.3) is False
    assert time.monotonic() - began < 5.0
    release.set()
    assert client.shutdown(20.0)
    delete_later(client)


def test_counting_waits_for_the_answer_and_only_the_latest_count_is_told(qtbot, client, loader):
    load(qtbot, client)
    loader.script.rate = 100.0
    seen = Recorder(client)
    client.generate(HELLO)
    for text in ("one", "one two", "one two three"):
        client.count([Message("user", text)])
    assert seen.counted == []
    qtbot.waitUntil(lambda: bool(seen.counted), timeout=20_000)
    assert seen.counted == [7] and bool(seen.of(Finished))


def test_nothing_is_generated_before_a_model_is_loaded(qtbot, client):
    seen = Recorder(client)
    client.generate(HELLO)
    qtbot.waitUntil(lambda: bool(seen.ended), timeout=20_000)
    assert "No model is loaded" in seen.ended[0][1].message


def test_stop_acts_at_once_where_another_program_s_answer_turns_out_to_be_before_it(qtbot, client):
    gate = threading.Event()
    load(qtbot, client)
    seen = Recorder(client)
    QTimer.singleShot(0, client._worker, lambda: gate.wait(20))  # the worker has not got to it
    request_id = client.generate(HELLO)
    client.stop()
    assert client.state is EngineState.STOPPING
    client._worker.see(HELLO)  # as the worker does when such an answer begins
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=20_000)
    assert seen.ended == [(request_id, None)] and client.lending.active
    gate.set()
