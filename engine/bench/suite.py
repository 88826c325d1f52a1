"""Prompt suites: JSON lines of {"id", "prompt"} or {"id", "messages"}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from engine.errors import RequestError
from engine.request import ROLES, GenerationRequest, Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """One chat to answer."""

    id: str
    messages: tuple[Message, ...]


def short_suite() -> list[Prompt]:
    """Every third prompt of the project's own suite: all its kinds in a few minutes."""
    return read_suite()[::3]


def read_suite(path: Path | None = None) -> list[Prompt]:
    """The prompts in ``path``, or the project's own suite. ``RequestError`` names the line that is wrong."""
    source = path or resources.files("resources") / "prompts" / "suite.jsonl"
    try:
        lines = source.read_text(encoding="utf-8-sig").split("\n")  # splitlines would also cut at U+2028 inside a text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RequestError(f"The prompts file {source} cannot be read ({reason}): give a file of JSON lines.") from error
    prompts = [_parse(line, f"{source}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise RequestError(f"The prompts file {source} is empty: give at least one line.")
    return prompts


def _parse(line: str, place: str) -> Prompt:
    try:
        record = json.loads(line)
        turns = record["messages"] if "messages" in record else [{"role": "user", "content": record["prompt"]}]
        messages = tuple(Message(turn["role"], turn["content"]) for turn in turns)
        if not all(message.role in ROLES and isinstance(message.content, str) for message in messages):
            raise TypeError(f"a message has one of the roles {', '.join(ROLES)} and a text")
        GenerationRequest(messages)  # an empty prompt is found here and not after minutes of measuring
        return Prompt(str(record["id"]), messages)
    except RequestError as error:
        raise RequestError(f"{place}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        shape = '{"id": ..., "prompt": ...} or {"id": ..., "messages": [...]}'
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        what = "this is not JSON" if isinstance(error, json.JSONDecodeError) else what
        raise RequestError(f"{place}: {what}; a line is {shape}.") from error
