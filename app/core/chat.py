"""What a chat is made of: plain records, what of them the engine reads, and the title taken from the first message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from app.core.fence import fenced
from app.core.graphemes import safe_cut
from app.core.sanitize import clean_text
from app.core.words import tr
from engine import Message

Role = Literal["system", "user", "assistant"]
State = Literal["sent", "streaming", "done", "stopped", "interrupted", "failed"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant")
STATES: tuple[State, ...] = ("sent", "streaming", "done", "stopped", "interrupted", "failed")
KINDS = {"pdf": "PDF", "docx": "Word", "rtf": "RTF"}  # of documents, as they are called in every language
TITLE_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat of the sidebar. Times are seconds since 1970.

    ``folder`` is "" for none, ``leaf_id`` the message at the end of the branch on show (None: the newest), ``options``
    what is set for this chat alone (system prompt, sampling, preset).
    """

    id: int
    title: str
    created_at: float
    updated_at: float
    pinned: bool = False
    folder: str = ""
    leaf_id: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a message, as text.

    ``kind`` is "" for a text file, else the document's (see ``KINDS``). Of its ``of_pages`` the first ``pages`` were read;
    both are 0 where it has none.
    """

    name: str
    text: str
    kind: str = ""
    pages: int = 0
    of_pages: int = 0


def attachments_of(values: Any) -> tuple[Attachment, ...]:
    """The attachments that plain values hold, as ``attachment_values`` makes them; what is none is left out."""
    files = [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
    return tuple(_attachment(each) for each in files)


def _attachment(values: dict[str, Any]) -> Attachment:
    kind, pages, of_pages = values.get("kind"), values.get("pages"), values.get("of_pages")
    known = Attachment(str(values.get("name", "")), str(values.get("text", "")), kind if kind in KINDS else "")
    if known.kind and type(pages) is int and type(of_pages) is int and 0 <= pages <= of_pages:
        return replace(known, pages=pages, of_pages=of_pages)
    return known


def attachment_values(file: Attachment) -> dict[str, Any]:
    """``file`` as plain values."""
    about = {"kind": file.kind, "pages": file.pages, "of_pages": file.of_pages} if file.kind else {}
    return {"name": file.name, "text": file.text, **about}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. ``created_at`` is in seconds since 1970.

    ``state`` is "sent" for what the user wrote; an answer is "streaming", then "done", "stopped" by the user, "failed",
    or "interrupted" when the program ended before it did. ``statistics`` is what the line under an answer shows (see
    ``app.core.figures``), None where there is none. ``parent_id`` is the message before, None for a chat's first one; messages
    with one parent are versions of each other.
    """

    id: int
    chat_id: int
    role: Role
    content: str
    state: State
    created_at: float
    statistics: dict[str, Any] | None = None
    parent_id: int | None = None
    attachments: tuple[Attachment, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether there is anything in it to send."""
        return bool(self.content.strip()) or bool(self.attachments)


def request_messages(messages: list[ChatMessage]) -> tuple[Message, ...]:
    """The turns to send to the engine: every message that has text, whatever became of it."""
    return tuple(Message(message.role, request_text(message)) for message in messages if message.has_text)


def request_text(message: ChatMessage) -> str:
    """What the engine reads of a message: its attachments as fenced blocks under their names, then the text."""
    if not message.attachments:
        return message.content  # by far the most: a long chat is read again and again
    parts = [f"{attachment.name}:\n{fenced(attachment.text)}" for attachment in message.attachments]
    return "\n\n".join([*parts, message.content] if message.content.strip() else parts)


def up_to_last_question(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The turns to answer: up to the last user message, with only the newest of several answers in a row."""
    known = list(messages)
    last = max((index for index, message in enumerate(known) if message.role == "user"), default=-1)
    turns: list[ChatMessage] = []
    for message in known[: last + 1]:
        if message.role == "assistant" and not message.has_text:
            continue
        if turns and message.role == turns[-1].role == "assistant":
            turns.pop()
        turns.append(message)
    return turns


def title_for(text: str, attachments: Sequence[Attachment] = ()) -> str:
    """The title of a chat that begins with this message."""
    return title_from(text if text.strip() or not attachments else attachments[0].name)


def untitled() -> str:
    """The title of a chat without one."""
    return tr("New chat")


def title_from(text: str) -> str:
    """A title of at most ``TITLE_LENGTH`` characters from the first line that has text; ``untitled()`` where none has."""
    lines = (" ".join(line.split()) for line in clean_text(text).split("\n"))
    line = next((line for line in lines if any(char.isprintable() and char != " " for char in line)), untitled())
    if len(line) <= TITLE_LENGTH:
        return line
    room = TITLE_LENGTH - 1  # the ellipsis takes one
    space = line.rfind(" ", 0, room + 1)
    # A space in the first half would leave too little; scripts without spaces are cut between characters.
    cut = space if space >= room // 2 else safe_cut(line, room)
    return line[:cut].rstrip(" ,;:.-") + "…"
