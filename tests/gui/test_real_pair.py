"""The window with the real worker and the real starter pair: an answer, a comparison, stopping, and the figures."""

from __future__ import annotations

from uuid import uuid4

import pytest

from app.core.meter_text import details_text
from app.services.engine_client import EngineState
from app.services.wiring import Services
from tests.gui.conftest import delete_later, wait_ready
from tests.gui.serving import client_of, switch_on

PROMPT = "Write a Python function that checks whether a string is a palindrome."
SLOW = 240_000  # ms; the pair runs on whatever processor there is


@pytest.fixture
def real(qtbot, starter, tmp_path, make_window):
    """A window over the real starter pair, loaded."""
    services = Services(tmp_path)
    window = make_window(services)
    services.settings.update(max_tokens=48)
    services.client.load(starter.id)
    wait_ready(qtbot, services.client, SLOW)
    yield window
    window.hide()
    assert services.shutdown(30.0)
    delete_later(window)
    delete_later(services)


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_the_real_pair_answers_compares_and_stops(qtbot, real):
    services, talk = real.services, real.services.conversation
    events = []
    services.client.events.connect(lambda _id, batch: events.extend(timed.event for timed in batch))

    real.composer.set_text(PROMPT)
    real.do.send()
    wait_ready(qtbot, services.client, SLOW)
    figures, snapshot = talk.messages[-1].statistics, services.meter.snapshot()
    cycles = [event for event in events if type(event).__name__ == "Cycle"]
    assert talk.messages[-1].state == "done" and "def " in talk.messages[-1].content
    assert figures["mode"] == "dflash" and figures["fallback"] is None
    assert snapshot.acceptance_rate == pytest.approx(sum(c.accepted for c in cycles) / sum(c.proposed for c in cycles))
    assert snapshot.tokens_per_cycle == pytest.approx(sum(c.committed for c in cycles) / len(cycles))
    assert snapshot.tok_s == pytest.approx(figures["decode_tok_s"]) and snapshot.tokens_per_cycle > 1

    real.do.new_chat()
    real.do.set_mode("compare")
    real.composer.set_text(PROMPT)
    real.do.send()
    qtbot.waitUntil(lambda: talk.comparison.comparison is not None and talk.comparison.running is None, timeout=SLOW)
    comparison = talk.comparison.comparison
    assert comparison.verdict.identical and comparison.verdict.compared == len(comparison.left.finished.token_ids)
    assert "identical" in real.compare.verdict.text()
    assert comparison.right.text == comparison.left.text

    costs = services.client.info.costs
    assert costs.widths[0] == 1 and len(costs.verify_s) == len(costs.widths) and min(costs.verify_s) > 0
    text = details_text(services.meter.log, services.meter.snapshot(), services.client.info)
    assert "slot 1: " in text and "block 2: " in text and "Cost of a pass on this machine: 1 slot" in text
    services.settings.update(arms=("lookup", "dflash:4"), max_tokens=12)
    real.do.compare_again()
    qtbot.waitUntil(lambda: talk.comparison.comparison is not comparison and talk.comparison.running is None, timeout=SLOW)
    other = talk.comparison.comparison
    assert other.verdict.identical and comparison.left.text.startswith(other.left.text)
    assert (other.left.statistics.mode, other.right.statistics.mode) == ("lookup", "dflash")
    assert other.right.statistics.proposed <= 3 * other.right.statistics.cycles

    real.do.new_chat()
    real.do.set_mode("dflash")
    services.settings.update(max_tokens=1_000)
    real.composer.set_text("Tell me a very long story about a lighthouse.")
    real.do.send()
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 20), timeout=SLOW)
    assert services.client.state is EngineState.DECODING
    shown = talk.active.text
    real.do.stop()
    wait_ready(qtbot, services.client, SLOW)
    assert talk.messages[-1].state == "stopped" and talk.messages[-1].content.startswith(shown)
    assert len(talk.messages[-1].content) < len(shown) + 400


def test_an_edited_question_is_read_from_where_it_differs(qtbot, real):
    services, talk = real.services, real.services.conversation
    services.settings.update(max_tokens=4)
    story = " ".join(f"On day {day} the keeper wrote about the wind, the lamp and the ships." for day in range(1, 30))
    # A name of its own: an earlier run's story may still lie in the prefix cache on disk.
    talk.send(f"Log {uuid4().hex}. {story}\n\nWhat did the keeper write about?", "dflash")
    wait_ready(qtbot, services.client, SLOW)
    assert talk.messages[-1].statistics["cached_tokens"] == 0
    talk.send("Who was the keeper?", "dflash")
    wait_ready(qtbot, services.client, SLOW)
    question = talk.messages[2]
    talk.edit(question.id, "Where did the keeper live?", "dflash")
    wait_ready(qtbot, services.client, SLOW)
    figures = talk.messages[-1].statistics
    assert talk.version_of(talk.messages[2].id) == (2, 2) and talk.tree[question.id] == question
    assert figures["cached_tokens"] > figures["prompt_tokens"] / 2


def test_a_pair_that_is_not_there_is_one_clear_line(qtbot, tmp_path, make_window):
    services = Services(tmp_path)
    window, failures = make_window(services), []
    services.client.load_failed.connect(failures.append)
    services.client.load("no-such-pair")
    qtbot.waitUntil(lambda: bool(failures), timeout=SLOW)
    assert services.client.state is EngineState.NO_MODEL and not failures[0].is_bug
    assert "no-such-pair" in window.banner.text and "\n" not in window.banner.text
    assert window.banner.action.text() == "Load Starter (SmolLM2 135M)"
    window.hide()
    assert services.shutdown(10.0)
    delete_later(window)
    delete_later(services)


def test_closing_while_the_real_pair_answers_ends_its_thread_and_keeps_the_text(qtbot, starter, tmp_path, make_window):
    services = Services(tmp_path)
    window = make_window(services)
    services.client.load(starter.id)
    wait_ready(qtbot, services.client, SLOW)
    window.composer.set_text("Tell me a very long story about a lighthouse.")
    window.do.send()
    talk = services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=SLOW)
    assert services.shutdown(20.0) and not services.client._thread.isRunning()
    again = Services(tmp_path)
    last = again.store.messages(again.store.chats()[0].id)[-1]
    assert last.state == "stopped" and last.content
    again.shutdown()
    delete_later(again)
    window.hide()
    delete_later(window)
    delete_later(services)


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_another_program_gets_the_real_pair_s_text_as_a_chat_does_while_both_ask(qtbot, real, others):
    services, talk = real.services, real.services.conversation
    services.settings.update(max_tokens=16)
    switch_on(qtbot, services)

    def stream() -> str:
        with client_of(services) as client:
            asked = {"model": starter, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 16}
            chunks = client.chat.completions.create(stream=True, extra_body={"mode": "dflash"}, **asked)
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    starter = services.client.info.id
    first = others.submit(stream)
    qtbot.waitUntil(lambda: services.client.lending.active, timeout=SLOW)
    second = others.submit(stream)
    real.composer.set_text(PROMPT)
    real.do.send()
    assert services.client.state is EngineState.WAITING
    wait_ready(qtbot, services.client, SLOW)
    qtbot.waitUntil(lambda: first.done() and second.done(), timeout=SLOW)
    assert first.result() == second.result() == talk.messages[-1].content != ""
    assert talk.messages[-1].statistics["mode"] == "dflash" and len(talk.messages) == 2
    qtbot.waitUntil(lambda: services.server.journal.entries()[0].statistics is not None, timeout=SLOW)
    assert services.server.journal.entries()[0].statistics.proposed > 0
