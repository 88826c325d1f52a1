"""A chat as a file for other programs: Markdown to read, JSON to process."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from app.core.chat import Chat, ChatMessage, untitled
from app.core.figures import statistics_line

SPEAKERS = {"system": "Instructions", "user": "You", "assistant": "Answer"}
STATE_NOTES = {
    "streaming": "not finished",
    "stopped": "stopped",
    "interrupted": "interrupted: the program ended during this answer",
    "failed": "failed",
}
# Names that Windows reserves, for files that travel.
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def chat_markdown(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """The chat as Markdown, ending in one newline. Messages stand as they were written."""
    parts = [f"# {chat.title}", f"*{_moment(chat.created_at)}*"]
    for message in messages:
        parts += [f"## {SPEAKERS[message.role]}", message.content.strip("\n")]
        notes = [STATE_NOTES.get(message.state, ""), statistics_line(message.statistics)]
        if any(notes):
            parts.append(f"*{' · '.join(note for note in notes if note)}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def chat_json(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """The chat as one JSON object (``format``, ``title``, times, ``messages``), ending in one newline.

    Times are ISO 8601 in UTC.
    """
    turns = []
    for message in messages:
        turn = {key: value for key, value in asdict(message).items() if key not in ("id", "chat_id")}
        turns.append({**turn, "created_at": _moment(message.created_at)})
    whole = {
        "format": "slipstream-chat-1",
        "title": chat.title,
        "created_at": _moment(chat.created_at),
        "updated_at": _moment(chat.updated_at),
        "messages": turns,
    }
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def file_name(chat: Chat, extension: str) -> str:
    """A file name for the save dialog that every file system takes; ``extension`` without the dot."""
    stem = re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", chat.title)
    stem = " ".join(stem.split()).strip(". ")
    stem = stem.encode()[:200].decode(errors="ignore").rstrip(". ")  # a name may have 255 bytes
    if not stem:
        stem = untitled()
    return f"_{stem}.{extension}" if _RESERVED.fullmatch(stem) else f"{stem}.{extension}"


def _moment(seconds_since_1970: float) -> str:
    return datetime.fromtimestamp(seconds_since_1970, UTC).isoformat(timespec="seconds")
