"""Starts the program as its own process and waits until it answers; what is left of it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from app.core.chat import ChatMessage
from app.services.wiring import CHATS
from app.store import ChatStore

ROOT = Path(__file__).parents[3]


def answering(folder: Path, way: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """The process while it writes an answer, and the processes it had started by then."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "tests.regressions.window.program", str(folder), way]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    if process.stdout.readline() != "answering\n":
        process.kill()
        raise AssertionError(process.stderr.read())
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    return process, children


def messages_of(folder: Path) -> list[ChatMessage]:
    """What the chat file holds."""
    store = ChatStore(folder / CHATS)
    try:
        return [message for chat in store.chats() for message in store.messages(chat.id)]
    finally:
        store.close()
