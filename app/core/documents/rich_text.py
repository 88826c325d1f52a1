"""The text of a rich text file (RTF)."""

from __future__ import annotations

import re
from pathlib import Path

from app.core.attachments import LARGEST_FILE, AttachmentError
from app.core.chat import Attachment
from app.core.documents.watch import Watch
from app.core.figures import size
from app.core.os_words import reason
from app.core.sanitize import clean_text
from app.core.words import tr

# Of the table of fonts and of one entry, in characters: the library's patterns take time by the square of them, without a pause.
LONGEST_TABLE, LONGEST_FONT = 200_000, 400
_TABLE = re.compile(r"\\fonttbl")
_BRACE = re.compile(r"[{}]")
_FONT = re.compile(r"\\f(?=\d)")
_FIELD = re.compile(r"(\\field)\{", re.IGNORECASE)


def read_rich_text(path: Path, watch: Watch) -> Attachment:
    """The whole text, without its looks. Raises ``AttachmentError`` and ``Cancelled``."""
    from striprtf.striprtf import rtf_to_text

    name = path.name
    try:
        if path.stat().st_size > 4 * LARGEST_FILE:
            sizes = {"size": size(path.stat().st_size), "room": size(4 * LARGEST_FILE)}
            raise AttachmentError(tr("{name} has {size} and a message holds {room}: attach a part of it.", name=name, **sizes))
        source = path.read_bytes().decode("cp1252", "replace")
    except OSError as error:
        raise AttachmentError(tr("{name} cannot be read ({reason}).", name=name, reason=reason(error))) from error
    watch.check()
    try:
        text = clean_text(rtf_to_text(_bounded(source), errors="replace")).strip()
    except (ValueError, LookupError, TypeError, OverflowError, AttributeError) as error:
        raise AttachmentError(tr("{name} is damaged: it cannot be read.", name=name)) from error
    watch.check()
    if not text:
        raise AttachmentError(tr("{name} holds no text.", name=name))
    return Attachment(name, text, "rtf")


def _bounded(source: str) -> str:
    """``source`` such that no pattern of the library spans more than one font. Raises ``ValueError`` where that cannot be."""
    source = _FIELD.sub(r"\1\n{", source)  # the shown text of a link is read anyway, its address never
    table = _TABLE.search(source)
    if table is None:
        return source
    depth, end = 1, len(source)
    for brace in _BRACE.finditer(source, table.end()):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            end = brace.end()
            break
    fonts = _FONT.split(source[table.end() : end])
    if end - table.end() > LONGEST_TABLE or max(map(len, fonts)) > LONGEST_FONT:
        raise ValueError("a table of fonts that no program writes")
    return source[: table.end()] + ";\n\\f".join(fonts) + source[end:]
