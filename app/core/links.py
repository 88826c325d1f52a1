"""What arrives from outside: links of the scheme ``slipstream:`` and exported chats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app.core.chat import ROLES, STATES, Role, State
from app.core.sanitize import clean_text
from app.core.words import tr

SCHEME = "slipstream"
PROMPT_LIMIT = 20_000  # characters
FILE_LIMIT = 50_000_000  # bytes
FORMAT = "slipstream-chat-1"


class LinkError(Exception):
    """One line for the user: why it cannot be opened."""


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message of an exported chat."""

    role: Role
    content: str
    state: State
    statistics: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ImportedChat:
    """An exported chat."""

    title: str
    messages: tuple[ImportedMessage, ...]


def prompt_of(link: str) -> str:
    """The text that ``slipstream:new?prompt=TEXT`` puts into the message field; empty for ``slipstream:`` alone.

    A link never sends: it comes from anywhere. Raises ``LinkError``.
    """
    parts = urlsplit(link)
    action = (parts.netloc or parts.path).strip("/")
    if parts.scheme != SCHEME or action not in ("", "new"):
        raise LinkError(tr("Slipstream does not know what this link asks for."))
    prompt = clean_text(parse_qs(parts.query).get("prompt", [""])[0])
    if len(prompt) > PROMPT_LIMIT:
        raise LinkError(tr("The link's text has more than {count} characters: paste it instead.", count=PROMPT_LIMIT))
    return prompt


def read_chat(path: Path) -> ImportedChat:
    """The chat in an exported file. Raises ``LinkError``."""
    problem = tr("{file} is no chat that Slipstream exported.", file=path.name)
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise LinkError(tr("{file} is larger than {size} MB: it was not opened.", file=path.name, size=FILE_LIMIT // 10**6))
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise LinkError(tr("{file} was exported by another version of Slipstream.", file=path.name))
        return ImportedChat(str(content["title"]), tuple(_message(turn, problem) for turn in content["messages"]))
    except OSError as error:
        raise LinkError(tr("{file} cannot be read ({reason}).", file=path.name, reason=error.strerror)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LinkError(problem) from error


def _message(turn: dict[str, Any], problem: str) -> ImportedMessage:
    role, state, statistics = turn["role"], turn["state"], turn.get("statistics")
    if role not in ROLES or state not in STATES or not isinstance(statistics, dict | None):
        raise LinkError(problem)
    # An answer that was still being written when it was exported is not being written here.
    return ImportedMessage(role, str(turn["content"]), "interrupted" if state == "streaming" else state, statistics)
