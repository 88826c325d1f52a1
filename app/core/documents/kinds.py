"""Which files are documents, told by how they begin, and who reads which."""

from __future__ import annotations

from pathlib import Path

from app.core.attachments import AttachmentError, cannot_be_attached, read_file
from app.core.chat import Attachment
from app.core.documents.watch import Watch
from app.core.words import tr

LARGEST = 500_000_000  # bytes: of a document nearly all are pictures
_PDF_WITHIN = 1024  # bytes: some programs write before a PDF's mark
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def kind_of(path: Path) -> str:
    """The kind of a document, told by its first bytes; "" for everything else. A zip counts as Word until it is read.

    Raises ``AttachmentError`` for a document of a kind that cannot be read here.
    """
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            start = file.read(_PDF_WITHIN)
    except OSError:
        return ""  # whoever reads it says why that cannot be
    if start.startswith(b"%PDF-") or (b"%PDF-" in start and path.suffix.lower() == ".pdf"):
        return "pdf"
    if start.startswith(b"{\\rtf"):
        return "rtf"
    if start.startswith(b"PK\x03\x04"):
        return "docx"
    if start.startswith(_OLD_OFFICE) and path.suffix.lower() in (".docx", ".docm"):  # encrypted, it is no zip
        raise AttachmentError(tr("{name} is locked with a password: save a copy without one.", name=path.name))
    if start.startswith(_OLD_OFFICE):
        raise cannot_be_attached(path.name)
    return ""


def read_document(path: Path, watch: Watch, password: str = "") -> Attachment:
    """The text of any file that can be attached. Raises ``AttachmentError``, ``PasswordNeeded`` among them, and ``Cancelled``."""
    kind = kind_of(path)
    if kind and path.stat().st_size > LARGEST:
        raise AttachmentError(tr("{name} is too large to be read.", name=path.name))
    # The libraries are imported when a document comes: the window must not start later for them.
    if kind == "pdf":
        from app.core.documents.pdf import read_pdf

        return read_pdf(path, watch, password)
    if kind == "docx":
        from app.core.documents.word import read_word

        return read_word(path, watch)
    if kind == "rtf":
        from app.core.documents.rich_text import read_rich_text

        return read_rich_text(path, watch)
    return read_file(path)
