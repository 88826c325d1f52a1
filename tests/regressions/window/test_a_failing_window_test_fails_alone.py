"""A window test that failed half-way once took the whole run down: its traceback kept an engine whose thread ran to the end."""

from __future__ import annotations

import os
import subprocess
import sys

FAILING = """
from app.services.engine_client import EngineClient
from tests.gui.conftest import load


def test_fails_with_an_engine_of_its_own(qtbot, loader):
    client = EngineClient(loader)
    load(qtbot, client)
    loader.script.tokens, loader.script.rate = 4000, 200.0
    assert client is None


def test_that_comes_after_it(qtbot, window):
    assert window.services.client.info is not None
"""


def test_a_failing_window_test_fails_alone(tmp_path):
    (tmp_path / "test_failing.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=long", "-p", "tests.gui.conftest", "-c", "pyproject.toml",
               "--rootdir", ".", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})  # fmt: skip
    assert done.returncode == 1 and done.stdout.startswith("FE."), done.stdout[-2000:]
    assert "made by the test and not ended: ['EngineClient']" in done.stdout
