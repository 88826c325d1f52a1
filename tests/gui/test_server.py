"""The window serves its model to other programs: in turn with the chats, through loads and faults, and never in a chat."""

from __future__ import annotations

import threading

import httpx2
import openai
import pytest
from PySide6.QtCore import Qt

from app.services.engine_client import EngineState
from app.services.server import ServerState
from engine import ModelError
from tests.gui.conftest import load, wait_ready
from tests.gui.serving import (
    PATIENCE_S,
    QUESTION,
    answer_of,
    ask,
    client_of,
    free_port,
    get,
    get_waiting,
    slow,
    switch_off,
    switch_on,
)

pytestmark = [pytest.mark.qt_log_ignore("This plugin does not support"), pytest.mark.usefixtures("keychain")]


def test_another_program_gets_the_loaded_model_s_answer_and_no_chat_gets_it(qtbot, serving, loader, others):
    answer = answer_of(qtbot, others.submit(ask(serving.services)))
    assert answer.choices[0].message.content.startswith("A rainbow forms") and answer.usage.completion_tokens == 40
    assert len(loader.engines) == 1, "one engine, no second copy"
    assert serving.services.conversation.messages == [] and serving.services.store.chats() == []


def test_the_meter_shows_it_as_another_program_s(qtbot, serving, loader, others):
    slow(loader)
    asked = others.submit(ask(serving.services))
    meter = serving.services.meter
    qtbot.waitUntil(lambda: meter.snapshot().phase == "decoding" and meter.snapshot().tokens > 10, timeout=20_000)
    assert meter.snapshot().lent and serving.meter.status.text() == "Other program"
    serving.do.new_chat()  # clears the meter of what is over, not of this
    assert serving.services.client.state is EngineState.READY and not serving.actions_by_id["stop"].isEnabled()
    loader.script.rate = 0.0
    answer_of(qtbot, asked)
    qtbot.waitUntil(lambda: meter.snapshot().phase == "done", timeout=20_000)
    assert meter.snapshot().tokens == 4_000 and len(meter.log.cycles) > 10
    serving.composer.set_text("Hello")
    serving.do.send()
    wait_ready(qtbot, serving.services.client)
    assert not meter.snapshot().lent and serving.meter.status.text() == "DFlash"


def test_an_answer_in_the_window_waits_for_the_open_one_says_so_and_comes_next(qtbot, serving, loader, others):
    slow(loader)
    services = serving.services
    first = others.submit(ask(services))
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=20_000)
    later = [others.submit(ask(services)) for _ in range(3)]
    qtbot.waitUntil(lambda: get_waiting(services) == 3, timeout=20_000)
    serving.composer.set_text("Mine")
    serving.do.send()
    assert services.client.state is EngineState.WAITING
    assert "yours is next" in serving.banner.text and serving.composer.button.text() == "Stop"
    assert len(loader.engines[-1].requests) == 1
    slow(loader, 40, 0.0)
    wait_ready(qtbot, services.client)
    assert services.conversation.messages[-1].state == "done" and serving.banner.text == ""
    assert [request.messages[-1].content for request in loader.engines[-1].requests][1] == "Mine"
    assert answer_of(qtbot, first).choices
    assert all(answer_of(qtbot, each).choices for each in later)


def test_stop_while_waiting_acts_at_once_and_leaves_the_other_program_s_answer_alone(qtbot, serving, loader, others):
    slow(loader)
    services = serving.services
    asked = others.submit(ask(services))
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=20_000)
    serving.composer.set_text("Mine")
    serving.do.send()
    qtbot.waitUntil(lambda: services.client.state is EngineState.WAITING)
    qtbot.keyClick(serving.composer.edit, Qt.Key.Key_Escape)
    assert services.client.state is EngineState.READY, "before anything else happens"
    assert services.conversation.messages[-1].state == "stopped" and serving.banner.text == ""
    qtbot.keyClick(serving.composer.edit, Qt.Key.Key_Escape)  # with nothing of its own to stop
    loader.script.rate = 0.0
    answer = answer_of(qtbot, asked)
    assert answer.usage.completion_tokens == 4_000 and answer.choices[0].finish_reason == "length"
    assert len(loader.engines[-1].requests) == 1, "what was stopped is never begun"


def test_a_request_waits_for_the_window_s_answer_and_what_is_wrong_with_it_is_said_meanwhile(qtbot, serving, loader, others):
    slow(loader)
    services = serving.services
    serving.composer.set_text("Mine")
    serving.do.send()
    qtbot.waitUntil(lambda: services.client.state is EngineState.DECODING, timeout=20_000)
    asked = others.submit(ask(services))
    too_long = others.submit(lambda: httpx2.post(
        f"{services.server.url}/chat/completions", timeout=PATIENCE_S, trust_env=False,
        json={"messages": [{"role": "user", "content": "word " * 9_000}]},
    ))  # fmt: skip
    refused = answer_of(qtbot, too_long)
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "context_length_exceeded"
    assert services.client.state is EngineState.DECODING and not asked.done()
    slow(loader, 40, 0.0)
    serving.do.stop()
    assert answer_of(qtbot, asked).usage.completion_tokens == 40
    wait_ready(qtbot, services.client)
    assert services.conversation.messages[-1].state == "stopped"


def test_a_server_that_is_switched_on_while_the_window_answers_lets_requests_wait(qtbot, window, loader, others):
    slow(loader)
    services = window.services
    services.settings.update(max_tokens=4_000)
    window.composer.set_text("Mine")
    window.do.send()
    qtbot.waitUntil(lambda: services.client.state is EngineState.DECODING, timeout=20_000)
    switch_on(qtbot, services)
    qtbot.waitUntil(lambda: services.client.lending._desk._away is None, timeout=20_000)
    assert services.client.state is EngineState.DECODING
    asked = others.submit(ask(services))
    qtbot.waitUntil(lambda: get_waiting(services) == 1, timeout=20_000)
    slow(loader, 40, 0.0)
    window.do.stop()
    assert answer_of(qtbot, asked).choices


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_loading_another_pair_refuses_with_a_time_to_come_again_and_then_goes_on_under_its_name(
    qtbot, serving, loader, others, phase
):
    services = serving.services
    slow(loader)
    loader.script.prefill_s = 30.0 if phase == "prefill" else 0.0
    asked = others.submit(ask(services))
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=20_000)
    waiting = others.submit(ask(services))
    qtbot.waitUntil(lambda: get_waiting(services) == 1, timeout=20_000)
    loader.script.load_s, loader.script.prefill_s = 0.6, 0.0
    slow(loader, 40, 0.0)
    services.client.load("other")
    for each in (asked, waiting):
        error = answer_of(qtbot, each)
        assert (error.status_code, error.code, error.response.headers["retry-after"]) == (503, "model_loading", "5")
    late = answer_of(qtbot, others.submit(ask(services)))
    assert services.client.state is EngineState.LOADING and late.status_code == 503
    wait_ready(qtbot, services.client)
    assert answer_of(qtbot, others.submit(lambda: get(services, "/v1/models"))).json()["data"][0]["id"] == "other"
    assert answer_of(qtbot, others.submit(ask(services))).status_code == 404, "the old name is gone"
    assert answer_of(qtbot, others.submit(ask(services, model="other"))).choices


def test_while_one_load_takes_another_s_place_programs_are_still_told_to_come_again(qtbot, serving, loader, others):
    client = serving.services.client
    loader.script.load_s = 60.0
    client.load("one")
    qtbot.waitSignal(client.loading, timeout=20_000).wait()
    loader.script.load_s = 2.0
    client.load("two")
    qtbot.waitSignal(client.loading, timeout=20_000).wait()
    assert answer_of(qtbot, others.submit(ask(serving.services))).code == "model_loading"
    wait_ready(qtbot, client)


def test_a_pair_that_is_refused_before_the_old_one_is_given_up_leaves_that_one_served(qtbot, serving, loader, others):
    loader.script.refusal = ModelError("nowhere is not on this machine: fetch it.")
    failures: list[object] = []
    serving.services.client.load_failed.connect(failures.append)
    serving.services.client.load("nowhere")
    qtbot.waitUntil(lambda: bool(failures), timeout=20_000)
    assert answer_of(qtbot, others.submit(ask(serving.services))).choices


def test_without_a_model_programs_are_told_so_and_the_server_stays(qtbot, serving, others):
    services = serving.services
    services.client.unload()
    qtbot.waitUntil(lambda: services.client.state is EngineState.NO_MODEL, timeout=20_000)
    error = answer_of(qtbot, others.submit(ask(services)))
    assert (error.status_code, error.code) == (503, "no_model") and "No model is loaded" in error.message
    assert answer_of(qtbot, others.submit(lambda: get(services, "/v1/models"))).json()["data"] == []
    assert answer_of(qtbot, others.submit(lambda: get(services, "/health"))).json()["status"] == "no_model"
    load(qtbot, services.client)
    assert answer_of(qtbot, others.submit(ask(services))).choices


def test_after_a_fault_of_the_engine_programs_are_told_that_there_is_none(qtbot, serving, loader, others):
    services = serving.services
    loader.script.crash_at = 5
    serving.composer.set_text("Mine")
    serving.do.send()
    qtbot.waitUntil(lambda: services.client.state is EngineState.LOST, timeout=20_000)
    assert answer_of(qtbot, others.submit(ask(services))).code == "no_model"
    loader.script.crash_at = None
    load(qtbot, services.client)
    assert answer_of(qtbot, others.submit(ask(services))).choices


def test_a_load_that_fails_leaves_no_model_to_serve(qtbot, serving, loader, others):
    loader.script.load_error = ModelError("The draft belongs to another model: choose another pair.")
    serving.services.client.load("broken")
    qtbot.waitUntil(lambda: serving.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    assert answer_of(qtbot, others.submit(ask(serving.services))).code == "no_model"


def test_a_client_that_leaves_ends_its_answer_and_the_next_one_is_served(qtbot, serving, loader, others):
    slow(loader)
    services = serving.services

    def leave() -> None:
        with client_of(services) as client:
            stream = client.chat.completions.create(model="scripted", messages=QUESTION, stream=True)
            next(iter(stream))
            stream.close()

    answer_of(qtbot, others.submit(leave))
    qtbot.waitUntil(lambda: not services.client.lending.active, timeout=20_000)
    slow(loader, 40, 0.0)
    assert answer_of(qtbot, others.submit(ask(services))).choices


def test_switching_off_ends_the_open_answer_with_what_it_has_and_refuses_those_that_wait(qtbot, serving, loader, others):
    slow(loader)
    services = serving.services
    asked = others.submit(ask(services))
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=20_000)
    waiting = others.submit(ask(services))
    qtbot.waitUntil(lambda: get_waiting(services) == 1, timeout=20_000)
    switch_off(qtbot, services.server)
    assert answer_of(qtbot, asked).usage.completion_tokens < 4_000
    assert answer_of(qtbot, waiting).code == "stopping"
    assert isinstance(answer_of(qtbot, others.submit(ask(services))), openai.APIConnectionError)
    assert services.client.state is EngineState.READY and not serving.meter.server.isVisible()


def test_on_and_off_twenty_times_ends_as_the_last_wish(qtbot, window, others):
    services = window.services
    services.settings.update(server_port=free_port())
    for turn in range(20):
        services.server.start()
        if turn % 3 == 0:
            qtbot.wait(15)
        services.server.stop()
    services.server.start()
    qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)
    assert answer_of(qtbot, others.submit(ask(services))).choices
    assert services.server.problem is None
    for _ in range(3):
        services.server.start()
        services.server.stop()
    qtbot.waitUntil(lambda: services.server.state is ServerState.OFF, timeout=20_000)


def test_learning_pauses_for_a_request_and_does_not_begin_while_one_is_answered(qtbot, serving, loader, others):
    client = serving.services.client
    loader.script.learning_steps, loader.script.learning_step_s = 10_000, 0.01
    assert client.learn([()])
    qtbot.waitUntil(lambda: bool(loader.engines[-1].learned_from), timeout=20_000)
    slow(loader)
    asked = others.submit(ask(serving.services))
    qtbot.waitUntil(lambda: client.lending.active, timeout=20_000)
    assert not client.is_learning and not client.learn([()])
    loader.script.rate = 0.0
    assert answer_of(qtbot, asked).choices


def test_quitting_with_an_open_answer_and_others_waiting_ends_at_once(qtbot, make_services, loader, others):
    services = make_services()
    load(qtbot, services.client)
    switch_on(qtbot, services)
    slow(loader)
    asked = others.submit(ask(services))
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=20_000)
    waiting = others.submit(ask(services))
    qtbot.waitUntil(lambda: get_waiting(services) == 1, timeout=20_000)
    assert services.shutdown(20.0)
    assert asked.result(10).usage.completion_tokens < 4_000
    assert waiting.result(10).code == "stopping"
    assert not [thread for thread in threading.enumerate() if thread.name == "server"]
