"""What a chat is made of: plain records, and the title taken from its first message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from app.core.graphemes import safe_cut
from app.core.sanitize import clean_text
from engine import Message

Role = Literal["system", "user", "assistant"]
State = Literal["sent", "streaming", "done", "stopped", "interrupted", "failed"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant")
STATES: tuple[State, ...] = ("sent", "streaming", "done", "stopped", "interrupted", "failed")
UNTITLED = "New chat"
TITLE_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat of the sidebar. Times are seconds since 1970."""

    id: int
    title: str
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. ``created_at`` is in seconds since 1970.

    ``state`` is "sent" for what the user wrote; an answer is "streaming", then "done", "stopped" by the user, "failed",
    or "interrupted" when the program ended before it did. ``statistics`` is what the line under an answer shows (see
    ``app.core.figures``), None where there is none.
    """

    id: int
    chat_id: int
    role: Role
    content: str
    state: State
    created_at: float
    statistics: dict[str, Any] | None = None


def request_messages(messages: list[ChatMessage]) -> tuple[Message, ...]:
    """The turns to send to the engine: every message that has text, whatever became of it."""
    return tuple(Message(message.role, message.content) for message in messages if message.content.strip())


def title_from(text: str) -> str:
    """A title of at most ``TITLE_LENGTH`` characters from the first line that has text; ``UNTITLED`` where none has."""
    lines = (" ".join(line.split()) for line in clean_text(text).split("\n"))
    line = next((line for line in lines if any(char.isprintable() and char != " " for char in line)), UNTITLED)
    if len(line) <= TITLE_LENGTH:
        return line
    room = TITLE_LENGTH - 1  # the ellipsis takes one
    space = line.rfind(" ", 0, room + 1)
    # A space in the first half would leave too little; scripts without spaces are cut between characters.
    cut = space if space >= room // 2 else safe_cut(line, room)
    return line[:cut].rstrip(" ,;:.-") + "…"
