"""What the local server's page shows: the example to copy, and a line of figures for each request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.core.words import number, tr

if TYPE_CHECKING:
    from engine.server.journal import Entry

QUESTION = '{"messages": [{"role": "user",\n    "content": "Hello!"}]}'


def curl_example(url: str, key: str) -> str:
    """A command that asks the server at the base ``url``; ``key`` "" where it wants none."""
    header = f' \\\n  -H "Authorization: Bearer {key}"' if key else ""
    return f"curl {url}/chat/completions{header} \\\n  -d '{QUESTION}'"


def columns() -> tuple[str, ...]:
    """The names of what ``row_of`` gives."""
    return tr("Time"), tr("Request"), tr("Program"), tr("Tokens read"), tr("Tokens written"), tr("tok/s"), tr("Status")


def row_of(entry: Entry) -> tuple[str, ...]:
    """A request in words, in the order of ``columns``: nothing of what was asked or answered."""
    figures = entry.statistics
    read = written = rate = ""
    if figures is not None:
        read, written = number(figures.prompt_tokens), number(figures.completion_tokens)
        rate = number(figures.decode_tok_s, ",.1f") if figures.decode_tok_s else ""
    clock = time.strftime("%H:%M:%S", time.localtime(entry.at))
    return clock, f"{entry.method} {entry.path}", entry.client or "–", read, written, rate, status_of(entry)


def status_of(entry: Entry) -> str:
    """How the request stands: being answered, answered with an HTTP status, or left by its program."""
    if entry.open:
        return tr("answering") if entry.answering else tr("waiting")
    return tr("left") if entry.status is None else str(entry.status)
