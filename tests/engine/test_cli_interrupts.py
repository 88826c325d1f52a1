"""Ctrl-C, a reader that leaves and a real terminal: the command line as a process of its own, on the real starter pair."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.models import ResolvedPair

ROOT = Path(__file__).parents[2]
LONG = "Tell the whole history of every rainbow that was ever seen, day after day. " * 200
PATIENCE_S = 120.0


class Process:
    """``slipstream ...`` with stderr on a terminal, so that loading steps are shown and can be waited for."""

    def __init__(self, *arguments: str, prompt: str = ""):
        self._terminal, child = pty.openpty()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        command = [sys.executable, "-m", "engine.cli", *arguments]
        self.run = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=child)
        os.close(child)
        assert self.run.stdin is not None and self.run.stdout is not None
        self.run.stdin.write(prompt.encode())
        self.run.stdin.close()
        self.stdout, self.stderr = self.run.stdout, ""

    def wait_for(self, words: str) -> None:
        """Until ``words`` were on the terminal."""
        end = time.monotonic() + PATIENCE_S
        while words not in self.stderr:
            assert time.monotonic() < end and self._read_terminal(1.0) is not None, f"{words!r} never came: {self.stderr!r}"

    def wait_until_loaded(self) -> None:
        """Until the last loading step was wiped off the terminal: measuring a machine for the first time takes seconds."""
        self.wait_for("Loading the draft")
        end = time.monotonic() + PATIENCE_S
        while visible(self.stderr):
            assert time.monotonic() < end and self._read_terminal(1.0) is not None, f"never loaded: {self.stderr!r}"

    def interrupt(self) -> None:
        self.run.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str, str, float]:
        """Exit code, the rest of stdout, all of stderr, and the seconds it took."""
        start = time.monotonic()
        while self._read_terminal(PATIENCE_S) is not None:
            pass
        out = self.stdout.read().decode()
        return self.run.wait(PATIENCE_S), out, self.stderr, time.monotonic() - start

    def close(self) -> None:
        if self.run.poll() is None:
            self.run.kill()
        self.run.wait()
        self.stdout.close()
        os.close(self._terminal)

    def _read_terminal(self, seconds: float) -> str | None:
        """What came within ``seconds``, empty for nothing, None at the end of the process."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return ""
        try:
            text = self._decoder.decode(os.read(self._terminal, 4096))
        except OSError:  # how Linux says that the other side is closed
            return None
        self.stderr += text
        return text


@pytest.fixture
def start(starter: ResolvedPair) -> Iterator:
    """Starts commands and makes sure that none is left."""
    started: list[Process] = []

    def command(*arguments: str, prompt: str = "") -> Process:
        started.append(Process(*arguments, prompt=prompt))
        return started[-1]

    yield command
    for process in started:
        process.close()


def visible(text: str) -> str:
    """What is left to see on the terminal's line after carriage returns and erasures."""
    return re.sub(r"[^\n]*\r\x1b\[K", "", text.replace("\r\n", "\n"))


def test_ctrl_c_while_loading_ends_with_one_line(start) -> None:
    process = start("generate", "--model", "starter", "--prompt", "Hi")
    process.wait_for("Loading the target")
    process.interrupt()
    code, out, err, seconds = process.end()
    assert (code, out) == (1, "")
    assert visible(err) == "slipstream: Loading was cancelled: nothing was loaded.\n"
    assert seconds < 60


def test_ctrl_c_during_prefill_ends_within_a_chunk_and_reports_it(start) -> None:
    process = start("generate", "--model", "starter", "--prompt", "-", "--json", "--max-tokens", "50", prompt=LONG)
    process.wait_until_loaded()
    time.sleep(0.2)  # into the first of some 40 chunks
    process.interrupt()
    code, out, err, seconds = process.end()
    record = json.loads(out)
    assert (code, visible(err)) == (1, "")
    assert (record["finish_reason"], record["text"], record["token_ids"]) == ("cancelled", "", [])
    assert record["prompt_tokens"] > 2500 and seconds < 20


def test_ctrl_c_during_decoding_keeps_what_was_said(start) -> None:
    process = start("generate", "--model", "starter", "--prompt", "Explain how rainbows form.", "--max-tokens", "1000")
    said = os.read(process.stdout.fileno(), 4096).decode()
    process.interrupt()
    code, out, err, seconds = process.end()
    assert code == 1 and said and (said + out).endswith("\n")
    assert re.search(r"\d+ tokens · .* · ended by cancelled\n$", visible(err))
    assert "Traceback" not in err and seconds < 20


def test_ctrl_c_during_a_benchmark_ends_it_with_what_there_is(start) -> None:
    process = start("bench", "--model", "starter", "--max-tokens", "500", "--json", os.devnull)
    process.wait_for("tokens/cycle")  # the table's header: the warm-up begins
    process.interrupt()
    code, _, err, _ = process.end()
    # The second where this machine has never measured which widths are exact, which comes first.
    ends = ("No prompt was finished.\n", "Measuring which block lengths are exact was stopped: the next time it begins anew.\n")
    assert code == 1 and visible(err).endswith(ends) and "Traceback" not in err


@pytest.mark.parametrize(
    "arguments", [("models", "list"), ("generate", "--model", "starter", "--prompt", "Hi", "--max-tokens", "400")]
)
def test_a_reader_that_leaves_ends_the_command_quietly(start, arguments: tuple[str, ...]) -> None:
    process = start(*arguments)
    process.stdout.close()
    while process._read_terminal(PATIENCE_S) is not None:
        pass
    assert (process.run.wait(PATIENCE_S), visible(process.stderr)) == (1, "")


def test_a_terminal_shows_the_loading_steps_and_clears_them(start) -> None:
    process = start("generate", "--model", "starter", "--prompt", "What is the capital of France?", "--max-tokens", "20")
    code, out, err, _ = process.end()
    assert (code, out) == (0, "The capital of France is Paris.\n")
    assert "Loading the target 10%" in err and re.fullmatch(r"\d+ tokens · [^\n]* · dflash\n", visible(err))


@pytest.mark.slow
def test_output_that_the_terminal_cannot_show_does_not_end_the_answer(starter: ResolvedPair) -> None:
    command = [sys.executable, "-m", "engine.cli", "generate", "--model", "starter", "--prompt", "Repeat exactly: žluťoučký kůň"]
    variables = os.environ | {"PYTHONIOENCODING": "ascii"}
    plain = subprocess.run([*command, "--max-tokens", "8"], cwd=ROOT, env=variables, capture_output=True, timeout=PATIENCE_S)
    assert (plain.returncode, b"Error" in plain.stderr) == (0, False) and rb"\u01" in plain.stdout
    record = subprocess.run(
        [*command, "--max-tokens", "8", "--json"], cwd=ROOT, env=variables, capture_output=True, timeout=PATIENCE_S
    )
    text = json.loads(record.stdout.decode("ascii"))["text"]
    assert text.encode("ascii", "backslashreplace") + b"\n" == plain.stdout


@pytest.mark.parametrize("arguments", [["models", "list"], pytest.param(["selftest"], marks=pytest.mark.slow)])
def test_a_full_output_is_one_line_and_code_1(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "engine.cli", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert "the output cannot be written" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_closed_standard_input_is_one_line_and_code_2() -> None:
    command = 'exec "$0" -m engine.cli generate --model starter --prompt - <&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stdout == ""
    assert "no standard input" in done.stderr and len(done.stderr.splitlines()) == 1
