"""The beginning of a file that is too long: whole pages where it has pages, else whole lines."""

from __future__ import annotations

import re
from dataclasses import replace

from app.core.chat import Attachment
from app.core.graphemes import safe_cut
from app.core.words import tr

_MARK = re.compile(r"^\[[^\[\]\d]*(\d+)\]$", re.MULTILINE)  # "[Page 3]" in any language


def first_part(file: Attachment, share: float) -> Attachment | None:
    """The beginning of ``file``, at most ``share`` (0 to 1) of its characters, and what is missing; None where nothing fits."""
    room = int(share * len(file.text))
    if file.pages:
        return _first_pages(file, room)
    line = file.text.rfind("\n", 0, room + 1)
    cut = line if line > room // 2 else safe_cut(file.text, room) if room > 0 else 0
    beginning = file.text[:cut].rstrip()
    return replace(file, text=beginning + "\n\n" + tr("[The rest was left out.]")) if beginning else None


def _first_pages(file: Attachment, room: int) -> Attachment | None:
    starts: list[int] = []
    for mark in _MARK.finditer(file.text):
        if int(mark.group(1)) == len(starts) + 1:  # a line of the page may look like a mark
            starts.append(mark.start())
    pages = max((count for count, start in enumerate(starts) if start <= room), default=0)
    if not 0 < pages < file.pages:
        return None
    note = tr("[Pages {first} to {last} were not read.]", first=pages + 1, last=file.of_pages)
    return replace(file, text=f"{file.text[: starts[pages]].rstrip()}\n\n{note}", pages=pages)
