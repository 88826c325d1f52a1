"""The text of a PDF, page by page; nothing in it is run, followed or fetched, and no picture is unpacked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO

from app.core.attachments import LONGEST, AttachmentError
from app.core.chat import Attachment
from app.core.documents.hyphens import joined
from app.core.documents.lines import PageText
from app.core.documents.watch import OutOfTime, Watch
from app.core.os_words import reason
from app.core.sanitize import clean_text
from app.core.words import tr
from engine import Cancelled

if TYPE_CHECKING:
    from pypdf import PdfReader

MOST_PAGES = 5_000
PAGE_S = 20.0  # of reading one page
STREAM_BYTES = 20_000_000  # of one stream when unpacked
STREAM_PARTS = 500_000  # numbers, texts and operators of one stream
FORMS, FORMS_KEPT = 500, 10  # drawings placed on one page, and how many of them stay unpacked
PAGES_KEPT = 20  # whose streams stay unpacked
ROOM = LONGEST - 1_000  # characters of all pages; what was not read is named after them
FIELDS, FIELD_LENGTH = 2_000, 2_000  # of a form, and characters of one


class PasswordNeeded(AttachmentError):
    """The document is locked; a password opens it."""


class SlowPage(Exception):
    """One page takes longer than it may."""


def read_pdf(path: Path, watch: Watch, password: str = "") -> Attachment:
    """As many pages as a message holds. Raises ``AttachmentError``, ``PasswordNeeded`` among them, and ``Cancelled``."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is wrong with a file is told to the user, not to the log
    name = path.name
    with _in_words(name), _limits(), path.open("rb") as file:
        reader = _opened(file, name, password)
        total = len(reader.pages)
        if total == 0:
            raise AttachmentError(tr("{name} has no pages.", name=name))
        texts = _texts(reader, total, watch)
        if not any(texts):
            words = tr("{name} holds no text, or only pictures of it: Slipstream cannot read those yet.", name=name)
            raise AttachmentError(words)
        text = joined("\n\n".join(_marked(number, each) for number, each in enumerate(texts, 1)))
        if len(texts) < total:
            text += "\n\n" + tr("[Pages {first} to {last} were not read.]", first=len(texts) + 1, last=total)
        elif fields := _fields(reader):
            text += "\n\n" + tr("[Fields of the form]") + "\n" + fields
    return Attachment(name, clean_text(text), "pdf", len(texts), total)


@contextmanager
def _limits() -> Iterator[None]:
    from pypdf import apply_configuration

    with apply_configuration(
        zlib_maximum_output_length=STREAM_BYTES,
        lzw_maximum_output_length=STREAM_BYTES,
        run_length_maximum_output_length=STREAM_BYTES,
        brotli_maximum_output_length=STREAM_BYTES,
        array_based_stream_maximum_output_length=STREAM_BYTES,
        stream_parsing_work_maximum_count=STREAM_PARTS,
        xform_maximum_invocations_per_extraction=FORMS,
        jbig2dec_binary=None,
    ):
        yield


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """What a damaged or hostile file makes pypdf raise, as one line for the user."""
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

    try:
        yield
    except (AttachmentError, Cancelled):
        raise
    except FileNotDecryptedError as error:
        raise PasswordNeeded(tr("{name} is locked with a password.", name=name)) from error
    except (LimitReachedError, MemoryError) as error:
        raise AttachmentError(tr("{name} unpacks to more than a document holds: it was not read.", name=name)) from error
    except (OutOfTime, SlowPage) as error:
        raise AttachmentError(tr("{name} takes too long to read: attach a part of it.", name=name)) from error
    except (DependencyError, NotImplementedError) as error:
        raise AttachmentError(tr("{name} is encrypted in a way that Slipstream does not know.", name=name)) from error
    except OSError as error:
        raise AttachmentError(tr("{name} cannot be read ({reason}).", name=name, reason=reason(error))) from error
    except Exception as error:  # pypdf raises whatever a damaged file runs into
        raise AttachmentError(tr("{name} is damaged: it cannot be read.", name=name)) from error


def _opened(file: BinaryIO, name: str, password: str) -> PdfReader:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and reader.decrypt(password) == PasswordType.NOT_DECRYPTED:
        wrong = tr("This password does not open {name}.", name=name)
        raise PasswordNeeded(wrong if password else tr("{name} is locked with a password.", name=name))
    return reader


def _texts(reader: PdfReader, total: int, watch: Watch) -> list[str | None]:
    """The texts of the first pages, up to the limits of a message and of time; None for a page that cannot be read."""
    texts: list[str | None] = []
    held = 0
    failure: Exception | None = None
    for number in range(min(total, MOST_PAGES)):
        watch.report(number, total)
        text = None
        try:
            watch.check()
            text = _page_text(reader, number, watch)
        except Cancelled:
            raise
        except OutOfTime as error:
            failure = error
            break
        except Exception as error:  # one damaged page, and the others may be whole
            failure = error
        held += len(_marked(number + 1, text)) + 2
        if held > ROOM and texts:
            break
        texts.append(text[:ROOM] if text else text)
        if number % PAGES_KEPT == PAGES_KEPT - 1:
            reader.resolved_objects.clear()
    if failure is not None and not any(texts):
        raise failure
    return texts


def _marked(number: int, text: str | None) -> str:
    missing = tr("(This page cannot be read.)") if text is None else tr("(No text on this page.)")
    return tr("[Page {number}]", number=str(number)) + "\n" + (text or missing)


def _page_text(reader: PdfReader, number: int, watch: Watch) -> str:
    page, guard = PageText(), _Guard(reader, watch)
    reader.pages[number].extract_text(
        visitor_operand_before=guard.before,
        visitor_text=lambda text, outer, inner, _font, size: page.add(text, outer, inner, size),
    )
    if guard.failure is not None:
        raise guard.failure
    return page.text().strip()


class _Guard:
    """Ends the reading of a page from inside, and lets go of drawings that were unpacked for it."""

    def __init__(self, reader: PdfReader, watch: Watch):
        self.failure: Exception | None = None
        self._reader, self._watch, self._ends = reader, watch, monotonic() + PAGE_S
        self._steps = self._forms = 0

    def before(self, operator: bytes, *_rest: Any) -> None:
        """Called before each operator. pypdf drops what is raised inside a drawing, so it is raised again after it."""
        self._steps += 1
        if operator == b"Do":
            self._forms += 1
            if self._forms % FORMS_KEPT == 0:
                self._reader.resolved_objects.clear()
        if self.failure is None and (operator == b"Do" or self._steps % 256 == 0):
            try:
                self._watch.check()
                if monotonic() > self._ends:
                    raise SlowPage
            except (Cancelled, OutOfTime, SlowPage) as error:
                self.failure = error
        if self.failure is not None:
            raise self.failure


def _fields(reader: PdfReader) -> str:
    """What is filled into the fields of a form, one a line; "" where there are none."""
    try:
        fields = reader.get_fields() or {}
    except Exception:  # the pages were read; a damaged form takes nothing away from them
        return ""
    lines = []
    for name, field in list(fields.items())[:FIELDS]:
        value = field.get("/V")
        if isinstance(value, str) and value.strip():
            label = field.get("/TU") if isinstance(field.get("/TU"), str) else name
            lines.append(f"{label}: {value.lstrip('/')}"[:FIELD_LENGTH])
    return "\n".join(lines)
