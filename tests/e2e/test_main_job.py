"""The main job as a user does it: start the program, type a prompt, read the answer, compare side by side, quit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("drives an X11 screen", allow_module_level=True)

from app.services.wiring import CHATS
from app.store import ChatStore
from tests.e2e.x11 import User, screen

PROMPT = "Write a Python function that checks whether a string is a palindrome."
LIMIT_S = 240.0


class Running:
    """The program in a process of its own, watched through its trace and its chat file."""

    def __init__(self, display: str, folder: Path):
        self.folder, self._trace = folder, folder / "trace.jsonl"
        environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
        environment |= {"DISPLAY": display, "SLIPSTREAM_TRACE": str(self._trace), "XDG_SESSION_TYPE": "x11"}
        environment.pop("WAYLAND_DISPLAY", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "--data", str(folder)], env=environment, stderr=subprocess.PIPE, text=True
        )

    def trace(self, kind: str = "", **wanted: object) -> list[dict]:
        if not self._trace.exists():
            return []
        lines = [json.loads(line) for line in self._trace.read_text().splitlines() if line.endswith("}")]
        return [
            line for line in lines
            if kind in ("", line["kind"]) and all(line.get(name) == value for name, value in wanted.items())
        ]  # fmt: skip

    def wait(self, done: Callable[[], object], what: str) -> None:
        end = time.monotonic() + LIMIT_S
        while not done():
            assert self.process.poll() is None, f"the program ended: {self.process.stderr.read()}"
            assert time.monotonic() < end, f"{what} did not happen within {LIMIT_S:.0f} s"
            time.sleep(0.1)

    def messages(self):
        store = ChatStore(self.folder / CHATS)
        try:
            return [store.messages(chat.id) for chat in store.chats()]
        finally:
            store.close()


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
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait(20)
        assert running.process.stderr is not None
        running.process.stderr.close()


def state_reached(running: Running, name: str, times: int = 1) -> Callable[[], bool]:
    return lambda: len(running.trace("state", name=name)) >= times


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
    assert shown["meter"]["tokens"] == f"{committed / len(cycles):.1f} tok/cycle"
    assert shown["meter"]["acceptance"] == f"{accepted / proposed * 100:.0f} % accepted"
    rate = (statistics["completion_tokens"] - 1) / statistics["decode_s"]
    assert shown["meter"]["rate"] == f"{rate:,.0f} tok/s" and shown["status"] == "DFlash"
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


def test_a_killed_program_shows_its_partial_answer_at_the_next_start(start, user):
    running = start()
    window = user.wait_for_window("Slipstream")
    running.wait(state_reached(running, "READY"), "loading the starter pair")
    user.click(window, -400, -110)
    user.type("Tell me a very long story about a lighthouse.")
    user.press("Return")
    running.wait(lambda: running.messages() and len(running.messages()[0][-1].content) > 20, "streaming")
    assert running.messages()[0][-1].state == "streaming"
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(20)
    partial = running.messages()[0][-1].content
    again = start()
    again.wait(lambda: again.messages()[0][-1].state == "interrupted", "marking the answer")
    assert again.messages()[0][-1].content == partial and len(partial) > 20
    user.wait_for_window("Slipstream")
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
