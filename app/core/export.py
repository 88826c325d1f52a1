"""A chat as Markdown for people and other programs to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.core.chat import Chat, ChatMessage, Role, State, untitled
from app.core.fence import fenced
from app.core.figures import statistics_line
from app.core.words import tr

_ENDING = re.compile(r"\.[A-Za-z]\w{0,9}")  # of a file's kind, and no part of a title like "Plan 3.5" or "Dr. Smith"
# Names that Windows reserves, for files that travel.
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def with_ending(name: str, chosen_filter: str) -> Path:
    """``name`` as it is, or with the ending of the file dialog's ``chosen_filter``, like "JSON (*.json)", where it has none."""
    path, ending = Path(name), re.search(r"\*(\.\w+)", chosen_filter)
    return path if _ENDING.fullmatch(path.suffix) or ending is None else path.with_name(path.name + ending.group(1))


def chat_markdown(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """The chat as Markdown, ending in one newline. Messages stand as they were written."""
    begun = datetime.fromtimestamp(chat.created_at, UTC).isoformat(timespec="seconds")
    parts = [f"# {chat.title}", f"*{begun}*"]
    if instructions := chat.options.get("system"):
        parts += [f"## {_speaker('system')}", instructions]
    for message in messages:
        parts.append(f"## {_speaker(message.role)}")
        parts += [f"**{file.name}**\n\n{fenced(file.text)}" for file in message.attachments]
        parts.append(message.content.strip("\n"))
        notes = [_note(message.state), statistics_line(message.statistics)]
        if any(notes):
            parts.append(f"*{' · '.join(note for note in notes if note)}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def file_name(chat: Chat, extension: str) -> str:
    """A file name for the save dialog that every file system takes; ``extension`` without the dot."""
    stem = re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", chat.title)
    stem = " ".join(stem.split()).strip(". ")
    stem = stem.encode()[:200].decode(errors="ignore").rstrip(". ")  # a name may have 255 bytes
    if not stem:
        stem = untitled()
    return f"_{stem}.{extension}" if _RESERVED.fullmatch(stem) else f"{stem}.{extension}"


def _speaker(role: Role) -> str:
    return {"system": tr("Instructions"), "user": tr("You"), "assistant": tr("Answer")}[role]


def _note(state: State) -> str:
    """What became of an answer that is not whole."""
    return {
        "streaming": tr("not finished"),
        "stopped": tr("stopped"),
        "interrupted": tr("interrupted: the program ended during this answer"),
        "failed": tr("failed"),
    }.get(state, "")
