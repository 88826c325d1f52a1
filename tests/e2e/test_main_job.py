"""The main job as a user does it: start the program, type a prompt, read the answer, compare side by side, quit."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("drives an X11 screen", allow_module_level=True)

from tests.e2e.running import Running, state_reached
from tests.e2e.x11 import User, screen

PROMPT = "Write a Python function that checks whether a string is a palindrome."


@pytest.fixture
def display() -> Iterator[str]:
    with screen() as name:
        yield name


@pytest.fixture
def user(display) -> Iterator[User]:
    user = User(display)
    yield user
    user.close()


@pytest.fixture
def start(starter, display, tmp_path) -> Iterator[Callable[[], Running]]:
    made: list[Running] = []

    def run() -> Running:
        made.append(Running(display, tmp_path))
        return made[-1]

    yield run
    for running in made:
        running.close()


def test_a_user_asks_reads_compares_and_quits(start, user):
    running = start()
    window = user.wait_for_window("Slipstream")
    running.wait(state_reached(running, "READY"), "loading the starter pair")
    user.click(window, -400, -110)  # into the composer
    user.type(PROMPT)
    user.press("Return")
    running.wait(lambda: running.trace("shown", reason="answer"), "an answer")

    # The meter on screen against the events, computed here from the raw cycles.
    cycles, shown = running.trace("event", type="Cycle"), running.trace("shown", reason="answer")[-1]
    finished = running.trace("event", type="Finished")[-1]
    proposed, accepted = (sum(cycle[name] for cycle in cycles) for name in ("proposed", "accepted"))
    committed = sum(cycle["committed"] for cycle in cycles)
    statistics = finished["statistics"]
    assert statistics["mode"] == "dflash" and proposed > 0
    assert shown["meter"]["tokens"] == f"{committed / len(cycles):.1f}\u00a0tok/cycle"
    assert shown["meter"]["acceptance"] == f"{accepted / proposed * 100:.0f}\u00a0% accepted"
    rate = (statistics["completion_tokens"] - 1) / statistics["decode_s"]
    assert shown["meter"]["rate"] == f"{rate:,.0f}\u00a0tok/s" and shown["status"] == "DFlash"
    question, answer = running.messages()[0]
    assert (question.content, question.state, answer.state) == (PROMPT, "sent", "done")
    assert answer.content == finished["text"] and "def " in answer.content

    user.press("Control_L", "n")
    user.press("Control_L", "3")
    user.type(PROMPT)
    user.press("Return")
    running.wait(lambda: running.trace("shown", reason="comparison"), "the comparison")
    plain, draft = (event["token_ids"] for event in running.trace("event", type="Finished")[-2:])
    assert plain == draft
    assert running.trace("shown", reason="comparison")[-1]["verdict"].endswith(f"identical, {len(draft)} tokens")
    running.wait(lambda: running.messages()[0][-1].state == "done", "keeping the answer")

    user.press("Control_L", "q")
    assert running.process.wait(20) == 0 and running.process.stderr.read() == ""


def partial_answer(running: Running) -> str:
    """What is on the disk of the answer being written, once it is more than a word or two; before, nothing."""
    last = [messages[-1] for messages in running.messages() if messages]  # a chat is there before its first message
    return last[0].content if last and last[0].state == "streaming" and len(last[0].content) > 20 else ""


def test_a_killed_program_shows_its_partial_answer_at_the_next_start(start, user):
    running = start()
    window = user.wait_for_window("Slipstream")
    running.wait(state_reached(running, "READY"), "loading the starter pair")
    user.click(window, -400, -110)
    user.type("Tell me a very long story about a lighthouse.")
    user.press("Return")
    running.wait(lambda: partial_answer(running), "streaming")
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(20)
    partial = partial_answer(running)
    ready = len(running.trace("state", name="READY"))
    again = start()
    again.wait(lambda: again.messages()[0][-1].state == "interrupted", "marking the answer")
    assert again.messages()[0][-1].content == partial and len(partial) > 20
    again.wait(state_reached(again, "READY", times=ready + 1), "the next start")
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(30) == 0 and again.process.stderr.read() == ""


def test_a_second_start_leaves_and_the_first_stays(start, display, tmp_path, user):
    running = start()
    user.wait_for_window("Slipstream")
    second = start()
    assert second.process.wait(60) == 0
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(60) == 0
