"""What the list of chats shows, row by row: pinned chats, folders, then the rest by day and month."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Literal

from app.core.chat import Chat
from app.core.words import tr

WEEK = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``folder`` is the folder of a chat shown inside it, or the name of a folder's own row.

    A hit of a search has the text around it as ``excerpt`` and the message that holds it.
    """

    kind: Literal["heading", "folder", "chat"]
    text: str
    chat_id: int | None = None
    folder: str = ""
    pinned: bool = False
    excerpt: str = ""
    message_id: int | None = None
    collapsed: bool = False


def chat_rows(chats: Sequence[Chat], today: date, collapsed: Collection[str] = ()) -> list[Row]:
    """Rows of all chats, which come the one last written to first. The chats of ``collapsed`` folders are left out."""
    pinned = [chat for chat in chats if chat.pinned]
    rows = [Row("heading", tr("Pinned"))] if pinned else []
    rows += [Row("chat", chat.title, chat.id, pinned=True) for chat in pinned]
    folders: dict[str, list[Chat]] = {}
    for chat in chats:
        if chat.folder and not chat.pinned:
            folders.setdefault(chat.folder, []).append(chat)
    if folders:
        rows.append(Row("heading", tr("Folders")))
    for name in sorted(folders, key=str.casefold):
        rows.append(Row("folder", name, folder=name, collapsed=name in collapsed))
        if name not in collapsed:
            rows += [Row("chat", chat.title, chat.id, folder=name) for chat in folders[name]]
    return rows + _by_time([chat for chat in chats if not chat.folder and not chat.pinned], today, {})


def hit_rows(chats: Sequence[Chat], today: date, hits: Mapping[int, tuple[str, int | None]]) -> list[Row]:
    """Rows of the chats that a search found, with (excerpt, message) by chat id."""
    return _by_time(chats, today, hits)


def day_group(updated_at: float, today: date) -> str:
    """Today, Yesterday, the days of the last week, then months, by the local calendar."""
    return _words(_group(updated_at, today))


def free_folder_name(taken: Iterable[str]) -> str:
    """A name for a new folder that no other has."""
    known, name, number = {each.casefold() for each in taken}, tr("New Folder"), 1
    while name.casefold() in known:
        number += 1
        name = tr("New Folder {number}", number=number)
    return name


def _by_time(chats: Sequence[Chat], today: date, hits: Mapping[int, tuple[str, int | None]]) -> list[Row]:
    rows: list[Row] = []
    for group, members in groupby(chats, lambda chat: _group(chat.updated_at, today)):
        rows.append(Row("heading", _words(group)))
        for chat in members:
            excerpt, message_id = hits.get(chat.id, ("", None))
            rows.append(Row("chat", chat.title, chat.id, pinned=chat.pinned, excerpt=excerpt, message_id=message_id))
    return rows


def _group(updated_at: float, today: date) -> tuple[int, int]:
    """(0, how near) for the last days, (year, month) before."""
    day = datetime.fromtimestamp(updated_at).date()
    days = (today - day).days
    return (0, 0 if days <= 0 else 1 if days == 1 else 2) if days <= WEEK else (day.year, day.month)


def _words(group: tuple[int, int]) -> str:
    year, number = group
    if not year:
        return (tr("Today"), tr("Yesterday"), tr("Previous 7 Days"))[number]
    return tr("{month} {year}", month=_months()[number - 1], year=str(year))


def _months() -> tuple[str, ...]:
    return (
        tr("January"), tr("February"), tr("March"), tr("April"), tr("May"), tr("June"), tr("July"), tr("August"),
        tr("September"), tr("October"), tr("November"), tr("December"),
    )  # fmt: skip
