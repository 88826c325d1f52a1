"""Text files that go with a message: what counts as text, what is too large, and how a huge paste becomes one."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from app.core.chat import Attachment
from app.core.figures import size
from app.core.os_words import reason
from app.core.sanitize import break_long_runs, clean_text
from app.core.words import tr

LONGEST = 1_000_000  # characters of one message, attachments included
LARGEST_FILE = 4 * LONGEST  # bytes: nothing larger can hold fewer characters, at four bytes each
EDITABLE = 20_000  # characters; a longer text is never laid out in an editor
HUGE_CHARACTERS, HUGE_LINES = 4_000, 60  # a paste beyond either goes beside the message
_MARKS = (  # UTF-32's begins like UTF-16's, so it comes first
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # control characters that no text file has; Escape colours terminal logs


class AttachmentError(Exception):
    """A file cannot be attached; ``str(error)`` is one line for the user with what to do."""


def cannot_be_attached(name: str) -> AttachmentError:
    """What to say of a file of another kind."""
    return AttachmentError(tr("{name} cannot be attached: text, code, PDF, Word (.docx) and RTF can.", name=name))


def read_file(path: Path) -> Attachment:
    """The text of a file in UTF-8, or in UTF-16 or UTF-32 with a mark. Raises ``AttachmentError``; never reads a huge file."""
    name = path.name or str(path)
    try:
        if path.is_dir():
            raise AttachmentError(tr("{name} is a folder: attach the files in it.", name=name))
        if not path.is_file():
            raise AttachmentError(tr("{name} is not there: it may have been moved.", name=name))
        there = path.stat().st_size
        if there > LARGEST_FILE:
            sizes = {"size": size(there), "room": size(LARGEST_FILE)}
            raise AttachmentError(tr("{name} has {size} and a message holds {room}: attach a part of it.", name=name, **sizes))
        content = path.read_bytes()
    except OSError as error:
        raise AttachmentError(tr("{name} cannot be read ({reason}).", name=name, reason=reason(error))) from error
    return Attachment(name, clean_text(decoded(content, name)))


def decoded(content: bytes, name: str) -> str:
    """The text of ``content``. Raises ``AttachmentError`` where it is none."""
    encoding = next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None) or _unmarked(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        # Which of the old encodings it is cannot be told, and a wrong guess would change words unseen.
        if encoding == "utf-8" and not _BINARY.search(content.decode("latin-1")):
            raise AttachmentError(tr("{name} is in an old encoding: save it as UTF-8 and attach it again.", name=name)) from error
        text = "\x00"
    if _BINARY.search(text):
        raise cannot_be_attached(name)
    return text


def _unmarked(content: bytes) -> str:
    """UTF-8, or UTF-16 where every second byte of a text in it is mostly zero."""
    start = content[:1_000]
    for encoding, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[0::2])):
        if len(content) >= 4 and len(content) % 2 == 0 and zeros.count(0) > 0.6 * len(zeros):
            return encoding
    return "utf-8"


def is_huge(text: str) -> bool:
    """Whether a pasted text is better kept beside the message: too long to look over, or a line that no editor lays out."""
    return len(text) > HUGE_CHARACTERS or text.count("\n") >= HUGE_LINES or break_long_runs(text) != text


def is_editable(text: str) -> bool:
    """Whether an editor can hold a text without stalling the window."""
    return len(text) <= EDITABLE and break_long_runs(text) == text


def pasted(text: str, taken: set[str]) -> Attachment:
    """A pasted text as an attachment, under a name that is not among ``taken``."""
    number = 1
    while (name := tr("Pasted text {number}", number=number)) in taken:
        number += 1
    return Attachment(name, text)
