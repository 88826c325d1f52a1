"""Writes small PDF and Word files as other programs do, down to their objects and parts, so that every detail can be wrong."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
Place = tuple[float, float, str]  # points from the left and from the bottom


def stream(data: bytes, head: bytes = b"", rounds: int = 1) -> bytes:
    """A stream object, compressed ``rounds`` times."""
    for _ in range(rounds):
        data = zlib.compress(data, 9)
    filters = b"/FlateDecode " * rounds
    return b"<< /Length %d /Filter [%s] %s >>\nstream\n%s\nendstream" % (len(data), filters, head, data)


def drawn(places: Sequence[Place], size: int = 12) -> bytes:
    """The operators that draw each text by itself."""
    return b"\n".join(
        b"BT /F1 %d Tf %g %g Td (%s) Tj ET" % (size, x, y, re.sub(rb"([\\\\()])", rb"\\\1", text.encode("cp1252")))
        for x, y, text in places
    )


def raw_pdf(path: Path, objects: Sequence[bytes]) -> Path:
    """A PDF of ``objects``, numbered from 1; the first is the catalogue."""
    written, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count, start = len(objects) + 1, len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n" % (count, table, count)
    path.write_bytes(written + b"startxref\n%d\n%%%%EOF\n" % start)
    return path


def pdf(path: Path, *contents: bytes, page: bytes = b"", more: Sequence[bytes] = ()) -> Path:
    """A PDF with a page for each of ``contents``; its streams' objects follow the pages, ``more`` follows them.

    ``page`` is put into every page; ``more`` begins with object ``4 + 2 * len(contents)``.
    """
    count = len(contents)
    kids = b" ".join(b"%d 0 R" % (4 + place) for place in range(count))
    pages = [
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> %s >> /Contents %d 0 R >>"
        % (page, 4 + count + place)
        for place in range(count)
    ]
    head = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count), FONT]
    return raw_pdf(path, [*head, *pages, *map(stream, contents), *more])


def lines(texts: Sequence[str], x: float = 50, top: float = 780, step: float = 14) -> list[Place]:
    """``texts`` below each other."""
    return [(x, top - place * step, text) for place, text in enumerate(texts)]


def paragraph(text: str, style: str = "", marks: str = "") -> str:
    """A paragraph of a Word document."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f'<w:p><w:pPr>{named}{marks}</w:pPr><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table of a Word document."""
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def relationships(*targets: tuple[str, str, str]) -> str:
    """The part that names others: (id, type, target)."""
    each = (
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"'
        + (' TargetMode="External"/>' if "://" in target else "/>")
        for name, kind, target in targets
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(each)}</Relationships>'


def word(path: Path, body: str, *, head: str = "", main: str = "word/document.xml", parts: dict[str, str] | None = None) -> Path:
    """A Word document with ``body``; ``head`` stands before the main part's root, ``parts`` come with it."""
    types = f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>'
    document = f'<w:document xmlns:w="{WORD}" xmlns:r="{OFFICE}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as into:
        into.writestr("[Content_Types].xml", types)
        into.writestr("_rels/.rels", relationships(("a", "officeDocument", main)))
        into.writestr(main, f'<?xml version="1.0" encoding="UTF-8"?>{head}{document}')
        for name, text in (parts or {}).items():
            into.writestr(name, text)
    return path
