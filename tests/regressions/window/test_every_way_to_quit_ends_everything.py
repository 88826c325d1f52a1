"""janhq/jan#5758, VonHoltenCodes/SlowBooks-Pro-2026#52, lmstudio-ai/lmstudio-bug-tracker#525: Cmd-Q left the engine running."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from app.services.crashlog import CRASH
from app.services.instance import SingleInstance
from tests.regressions.window.running import answering, messages_of


@pytest.mark.parametrize("way", ["command", "SIGTERM", *(pytest.param(way, marks=pytest.mark.slow) for way in ("event", "SIGINT"))])
def test_quitting_in_an_answer_keeps_its_text_and_leaves_no_process(qapp, tmp_path: Path, way: str):
    sent = getattr(signal, way, None)
    process, children = answering(tmp_path, "wait" if sent else way)
    if sent:
        process.send_signal(sent)
    _out, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert psutil.wait_procs(children, timeout=5)[1] == []
    question, answer = messages_of(tmp_path)
    assert question.content == "Hello" and answer.state == "stopped" and len(answer.content) > 100
    assert not (tmp_path / CRASH).exists()
    next_start = SingleInstance(tmp_path)
    assert next_start.acquire()
    next_start.release()
    next_start.deleteLater()
