"""The text of a Word document as Markdown: headings, lists, tables and notes; no picture, macro or link target is opened."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from app.core.attachments import LONGEST, AttachmentError, cannot_be_attached
from app.core.chat import Attachment
from app.core.documents.watch import OutOfTime, Watch
from app.core.os_words import reason
from app.core.sanitize import clean_text
from app.core.words import tr
from engine import Cancelled

XML_BYTES = 20_000_000  # of all parts that hold text, when unpacked
TEXT_BYTES = 4 * LONGEST  # of its text: no character takes more than four
_TEXT = re.compile(rb">([^<]+)")


def read_word(path: Path, watch: Watch) -> Attachment:
    """The whole text. Raises ``AttachmentError`` and ``Cancelled``."""
    name = path.name
    with _in_words(name), path.open("rb") as file:
        parts = _text_parts(file, name, watch)
        text = clean_text(_markdown(_html(parts, watch), watch)).strip()
    if not text:
        raise AttachmentError(tr("{name} holds no text.", name=name))
    return Attachment(name, text, "docx")


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """What a damaged or hostile file makes the libraries raise, as one line for the user."""
    try:
        yield
    except (AttachmentError, Cancelled):
        raise
    except OutOfTime as error:
        raise AttachmentError(tr("{name} takes too long to read: attach a part of it.", name=name)) from error
    except MemoryError as error:
        raise _too_much(name) from error
    except RuntimeError as error:  # zipfile's words for a part with a password
        locked = tr("{name} is locked with a password: save a copy without one.", name=name)
        raise (_damaged(name) if isinstance(error, RecursionError) else AttachmentError(locked)) from error
    except OSError as error:
        if error.errno is None:  # mammoth's own, where the main part is missing
            raise _damaged(name) from error
        raise AttachmentError(tr("{name} cannot be read ({reason}).", name=name, reason=reason(error))) from error
    except Exception as error:  # XML, zip and their readers raise whatever a damaged file runs into
        raise _damaged(name) from error


def _too_much(name: str) -> AttachmentError:
    return AttachmentError(tr("{name} unpacks to more than a document holds: it was not read.", name=name))


def _damaged(name: str) -> AttachmentError:
    return AttachmentError(tr("{name} is damaged: it cannot be read.", name=name))


class _Parts(io.BytesIO):
    """A document in memory that checks whether it is still wanted whenever something of it is read."""

    def __init__(self, watch: Watch):
        super().__init__()
        self._watch = watch

    def read(self, size: int | None = -1, /) -> bytes:
        self._watch.check()
        return super().read(size)


def _text_parts(file: BinaryIO, name: str, watch: Watch) -> _Parts:
    """The document with nothing but its parts of text, each looked through: all that is read further on.

    zipfile unpacks no more of a part than its entry says.
    """
    kept, letters = _Parts(watch), 0
    with zipfile.ZipFile(file) as parts, zipfile.ZipFile(kept, "w") as into:
        if not any(each.startswith("word/") for each in parts.namelist()):
            raise cannot_be_attached(name)
        texts = [part for part in parts.infolist() if part.filename.lower().endswith((".xml", ".rels"))]
        if sum(part.file_size for part in texts) > XML_BYTES:
            raise _too_much(name)
        for part in texts:
            content = parts.read(part)
            # No Word document declares entities, which could unfold to anything or name other files.
            if b"<!DOCTYPE" in content.replace(b"\0", b""):
                raise _damaged(name)
            letters += sum(len(found.group(1)) for found in _TEXT.finditer(content))
            into.writestr(part.filename, content)
    if letters > TEXT_BYTES:
        raise AttachmentError(
            tr("{name} holds more than the {limit} characters of a message: attach a part of it.", name=name, limit=LONGEST)
        )
    return kept


def _html(parts: _Parts, watch: Watch) -> str:
    import mammoth

    found = mammoth.convert_to_html(
        parts, include_embedded_style_map=False, external_file_access=False, convert_image=lambda _image: []
    )
    watch.check()
    return found.value


def _markdown(html: str, watch: Watch) -> str:
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Keeps the addresses of the web only: others lead within the document, where Markdown has no marks."""

        def convert_a(self, el: Any, text: str, parent_tags: Any) -> str:
            watch.check()
            is_web = str(el.get("href", "")).startswith(("http://", "https://"))
            return super().convert_a(el, text, parent_tags) if is_web else text  # type: ignore[misc]

        def convert_p(self, el: Any, text: str, parent_tags: Any) -> str:
            watch.check()
            return super().convert_p(el, text, parent_tags)  # type: ignore[misc]

        def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
            return super().convert_td(el, text.replace("|", r"\|"), parent_tags)  # type: ignore[misc]

        convert_th = convert_td

    converter = Converter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, table_infer_header=True, strip=["img"]
    )
    return re.sub(r"\n{3,}", "\n\n", converter.convert(html))
