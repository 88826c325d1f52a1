"""``slipstream serve`` in processes of their own, on the real starter pair and free ports."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from engine.models import ResolvedPair
from engine.models.paths import cache_folder
from tests.engine.server.desked import Desked
from tests.engine.text.test_tool_calls import HERMES

ROOT = Path(__file__).parents[3]
PATIENCE_S = 120.0


class Served:
    """A running server. ``lines`` are what it said on stdout and stderr."""

    def __init__(self, folder: Path, *options: str, **variables: str):
        command = [sys.executable, "-m", "engine.cli", "serve", "--port", "0", *options]
        environment = dict(os.environ) | {"SLIPSTREAM_HOME": str(folder), "PYTHONUNBUFFERED": "1"} | variables
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._clients: list[openai.OpenAI] = []
        self._spoke = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self._wait_for(r"Serving .* at (http://\S+)/v1")[1]
        self.http = httpx2.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._spoke:
                self.lines.append(line.rstrip("\n"))
                self._spoke.notify_all()

    def _wait_for(self, pattern: str) -> re.Match[str]:
        def found() -> re.Match[str] | None:
            return next((match for line in self.lines if (match := re.search(pattern, line))), None)

        with self._spoke:
            came = self._spoke.wait_for(lambda: found() or self.process.poll() is not None, PATIENCE_S)
        match = found()
        assert came and match is not None, f"{pattern} never came: {self.lines}"
        return match

    def client(self, **settings: Any) -> openai.OpenAI:
        settings = {"api_key": "any", "max_retries": 0, "timeout": PATIENCE_S, **settings}
        made = openai.OpenAI(base_url=f"{self.url}/v1", **settings)
        self._clients.append(made)  # left to the collector, its connections may go before it and then warn
        return made

    def post(self, path: str = "/v1/chat/completions", **body: Any) -> httpx2.Response:
        return self.http.post(path, json=body)

    def counts(self) -> dict[str, float]:
        """The metrics, by name and labels."""
        lines = [line for line in self.http.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Asks the server to end; its exit code."""
        self.process.send_signal(number)
        return self.leave()

    def leave(self) -> int:
        """Waits for the end; the exit code."""
        for client in (self.http, *self._clients):
            client.close()
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Path:
    """A data folder with the starter pair and this machine's measured costs, and with an empty prefix cache."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "models").mkdir()
    (folder / "models" / "starter").symlink_to(starter.target.parent, target_is_directory=True)
    if (cache_folder() / "costs").is_dir():
        shutil.copytree(cache_folder() / "costs", folder / "cache" / "costs")
    return folder


@pytest.fixture(scope="package")  # of a session it would still run while other tests look for processes left behind
def server(home: Path) -> Iterator[Served]:
    """One server for all tests that leave it as it was."""
    running = Served(home, "--model", "starter", "--max-queue", "2")
    yield running
    assert running.stop(signal.SIGINT) == 0
    assert not [line for line in running.lines if "Traceback" in line], running.lines


@pytest.fixture(scope="session")
def tool_pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> str:
    """The starter's target alone, with a chat template that knows tools, in Hermes' syntax."""
    folder = tmp_path_factory.mktemp("pair") / "caller"
    shutil.copytree(starter.target, folder, copy_function=os.symlink)
    config = folder / "tokenizer_config.json"
    changed = json.loads(config.read_text()) | {"chat_template": HERMES}
    config.unlink()
    config.write_text(json.dumps(changed))
    return str(folder)


@pytest.fixture
def desked() -> Iterator[Desked]:
    made = Desked()
    yield made
    made.stop.set()
    made.thread.join(20)
    assert not made.thread.is_alive()
