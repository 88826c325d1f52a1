"""Prompt suites: JSON lines of {"id", "prompt"} or {"id", "messages"}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from engine.errors import RequestError
from engine.request import Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """One chat to answer."""

    id: str
    messages: tuple[Message, ...]


def read_suite(path: Path | None = None) -> list[Prompt]:
    """The prompts in ``path``, or the project's own suite. ``RequestError`` names the line that is wrong."""
    source = path or resources.files("resources") / "prompts" / "suite.jsonl"
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"The prompts file {source} cannot be read ({error}): give a file of JSON lines.") from error
    prompts = [_parse(line, f"{source}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise RequestError(f"The prompts file {source} is empty: give at least one line.")
    return prompts


def _parse(line: str, place: str) -> Prompt:
    try:
        record = json.loads(line)
        turns = record["messages"] if "messages" in record else [{"role": "user", "content": record["prompt"]}]
        messages = tuple(Message(turn["role"], turn["content"]) for turn in turns)
        if not all(isinstance(message.content, str) for message in messages):
            raise TypeError("content is not text")
        return Prompt(str(record["id"]), messages)
    except (ValueError, KeyError, TypeError) as error:
        shape = '{"id": ..., "prompt": ...} or {"id": ..., "messages": [...]}'
        raise RequestError(f"{place}: {error!r}; a line is {shape}.") from error
