"""Chats as JSON: one or all of them with every branch, attachment and option, written and read back."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.core.chat import ROLES, STATES, Chat, ChatMessage, State, attachment_values, attachments_of
from app.core.figures import known_figures, size
from app.core.json_steps import Lists, read_object
from app.core.options import ChatOptions, taken_otherwise
from app.core.os_words import reason
from app.core.words import tr

CHAT, CHATS, OLD = "slipstream-chat-2", "slipstream-chats-2", "slipstream-chat-1"
FILE_LIMIT = 500_000_000  # bytes
PIECE = 1_000_000  # characters of a file read in one step
LISTS: Lists = {"chats": {"messages": {}}, "messages": {}}  # what is long in an exported file
NAMED_OPTIONS, NAMED_TITLE = 3, 40  # of a chat in a note, and characters of its title
LATEST = 32_503_680_000.0  # seconds since 1970: the year 3000
WholeChat = tuple[Chat, list[ChatMessage]]


class ArchiveError(Exception):
    """One line for the user: why a file cannot be read as chats."""


def chat_json(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """A chat with all its ``messages`` (parents first) as one JSON object, ending in one newline.

    Times are ISO 8601 in UTC. Messages are numbered from 1; ``leaf`` is the end of the branch on show.
    """
    return json.dumps({"format": CHAT, **_record(chat, messages)}, ensure_ascii=False, indent=2) + "\n"


def chats_json(chats: Iterable[WholeChat]) -> Iterator[str]:
    """Many chats as one JSON object, in pieces of one chat each."""
    yield f'{{"format": "{CHATS}", "chats": ['
    between = "\n"
    for chat, messages in chats:
        yield between + json.dumps(_record(chat, messages), ensure_ascii=False)
        between = ",\n"
    yield "\n]}\n"


def read_chats(path: Path, notes: list[str] | None = None) -> Generator[float, None, list[WholeChat]]:
    """The chats of an exported file, each with its messages, parents first; ids hold within one chat only.

    ``notes`` gets a sentence for each chat whose options are not taken as they stand there.

    In small steps; each yields how much of the file was read, 0 to 1. Reads what every version of Slipstream wrote. Raises
    ``ArchiveError`` for anything else: then nothing of it is taken.
    """
    try:
        total = path.stat().st_size
        if total > FILE_LIMIT:
            limit = size(FILE_LIMIT)
            raise ArchiveError(tr("{file} is larger than {limit}: it was not opened.", file=path.name, limit=limit))
        text = yield from _text_of(path)
        content = yield from _shares(read_object(text, LISTS), len(text))
        kind = content["format"]
        if kind not in (CHAT, CHATS, OLD):
            raise ArchiveError(tr("{file} was exported by another version of Slipstream: update this one.", file=path.name))
        chats: list[WholeChat] = []
        for record in content["chats"] if kind == CHATS else [_from_version_1(content) if kind == OLD else content]:
            chats.append((yield from _chat(record)))
            if notes is not None and (otherwise := taken_otherwise(record["options"])):
                what = ", ".join(otherwise[:NAMED_OPTIONS])
                notes.append(tr("In “{title}” {what}.", title=chats[-1][0].title[:NAMED_TITLE], what=what))
        return chats
    except OSError as error:
        raise ArchiveError(tr("{file} cannot be read ({reason}).", file=path.name, reason=reason(error))) from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ArchiveError(tr("{file} is no chat that Slipstream exported.", file=path.name)) from error


def _text_of(path: Path) -> Generator[float, None, str]:
    pieces: list[str] = []
    with path.open(encoding="utf-8") as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
            yield 0.0
    return "".join(pieces)


def _shares(steps: Generator[int, None, dict[str, Any]], total: int) -> Generator[float, None, dict[str, Any]]:
    try:
        while True:
            yield next(steps) / total
    except StopIteration as end:
        return end.value


def moment(seconds_since_1970: float) -> str:
    """A time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds_since_1970, UTC).isoformat()


def _record(chat: Chat, messages: Sequence[ChatMessage]) -> dict[str, Any]:
    places: dict[int | None, int] = {message.id: place for place, message in enumerate(messages, 1)}
    return {
        "title": chat.title,
        "created_at": moment(chat.created_at),
        "updated_at": moment(chat.updated_at),
        "pinned": chat.pinned,
        "folder": chat.folder,
        "options": chat.options,
        "leaf": places.get(chat.leaf_id),
        "messages": [
            {
                "id": places[message.id],
                "parent": places.get(message.parent_id),
                "role": message.role,
                "content": message.content,
                "state": message.state,
                "created_at": moment(message.created_at),
                "statistics": message.statistics,
                "attachments": [attachment_values(each) for each in message.attachments],
            }
            for message in messages
        ],
    }


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """Version 1 had no branches: each message followed the one before."""
    turns = [
        {"id": place, "parent": place - 1 or None, "attachments": [], "created_at": content["created_at"], **turn}
        for place, turn in enumerate(content["messages"], 1)
    ]
    return {**content, "pinned": False, "folder": "", "options": {}, "leaf": len(turns) or None, "messages": turns}


def _chat(record: dict[str, Any]) -> Generator[float, None, WholeChat]:
    messages: list[ChatMessage] = []
    known: set[int | None] = {None}
    for turn in record["messages"]:
        message = _message(turn)
        if message.id in known or message.parent_id not in known:
            raise ValueError("a message stands before its parent, or twice")
        known.add(message.id)
        messages.append(message)
        yield 1.0
    if record["leaf"] not in known or type(record["pinned"]) is not bool or not isinstance(record["options"], dict):
        raise ValueError("not as exported")
    begun, written = _seconds(record["created_at"]), _seconds(record["updated_at"])
    options = _options(record["options"])
    title, folder = _text(record["title"]), _text(record["folder"])
    return Chat(0, title, begun, written, record["pinned"], folder, record["leaf"], options), messages


def _message(turn: dict[str, Any]) -> ChatMessage:
    role, state, statistics = turn["role"], turn["state"], turn.get("statistics")
    if role not in ROLES or state not in STATES or not isinstance(statistics, dict | None) or type(turn["id"]) is not int:
        raise ValueError("not as exported")
    files = attachments_of([{**each, "name": _text(each["name"]), "text": _text(each["text"])} for each in turn["attachments"]])
    at, content = _seconds(turn["created_at"]), _text(turn["content"])
    # An answer that was still being written when it was exported is not being written here.
    kept: State = "stopped" if state == "streaming" else state
    figures = None if statistics is None else known_figures(statistics)
    return ChatMessage(turn["id"], 0, role, content, kept, at, figures, turn["parent"], files)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _seconds(value: Any) -> float:
    # No calendar of the system's shows a time much before or after these.
    return min(max(datetime.fromisoformat(_text(value)).timestamp(), 0.0), LATEST)


def _options(values: dict[str, Any]) -> dict[str, Any]:
    """What of a chat's options is known here, each in its range."""
    known = ChatOptions().with_values(values).values()
    return {name: known[name] for name in values if name in known}
