"""Which files are read as documents, rich text among them, and what is said of others."""

from __future__ import annotations

import pytest

from app.core.attachments import AttachmentError
from app.core.chat import Attachment
from app.core.documents.kinds import kind_of, read_document
from app.core.documents.part import first_part
from app.core.documents.watch import Watch
from tests.app.core.documents.made import drawn, lines, paragraph, pdf, word

RICH = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Helvetica;}{\f1\fnil\fcharset128 MS Mincho;}}
{\colortbl;\red0;}
{\info{\author Nobody}}\f0\fs24 Gr\'fc\'dfe, \b bold\b0  and \u8364?uro\par
{\field{\*\fldinst{HYPERLINK "https://example.org"}}{\fldrslt our site}}\par {\f1 \'93\'fa\'96\'7b}\par
{\*\unknown hidden}{\pict\wmetafile8 0123}\trowd A\cell B\cell\row}"""


def made(folder, kind: str):
    """A document that holds one word."""
    if kind == "pdf":
        return pdf(folder / "a.pdf", drawn(lines(["Hello"])))
    if kind == "docx":
        return word(folder / "a.docx", paragraph("Hello"))
    path = folder / "a.rtf"
    path.write_bytes(rb"{\rtf1 Hello}")
    return path


@pytest.mark.parametrize("kind", ["pdf", "docx", "rtf"])
def test_a_document_is_told_by_its_content_whatever_its_name(tmp_path, kind):
    path = made(tmp_path, kind).rename(tmp_path / "noending")
    file = read_document(path, Watch())
    assert (kind_of(path), file.kind) == (kind, kind) and "Hello" in file.text


def test_what_is_no_document_is_left_to_the_reader_of_texts(tmp_path):
    for name, content in (("a.pdf", b"only words"), ("b.py", b"x = '%PDF-'"), ("c.docx", b"also words"), ("d", b"")):
        (tmp_path / name).write_bytes(content)
        assert kind_of(tmp_path / name) == "" and read_document(tmp_path / name, Watch()).text == content.decode()
    assert kind_of(tmp_path) == kind_of(tmp_path / "gone.pdf") == ""


def test_old_and_locked_office_files_are_refused_with_what_can_be_attached(tmp_path):
    kinds = r"a\.doc cannot be attached: text, code, PDF, Word \(\.docx\) and RTF can"
    for name, words in (("a.doc", kinds), ("b.docx", r"b\.docx is locked with a password: save a copy without one")):
        (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512)
        with pytest.raises(AttachmentError, match=words):
            kind_of(tmp_path / name)


def test_rich_text_is_read_without_its_looks(tmp_path):
    (tmp_path / "a.rtf").write_bytes(RICH)
    file = read_document(tmp_path / "a.rtf", Watch())
    assert [line for line in file.text.split("\n") if line] == ["Grüße, bold and €uro", "our site", "日本", "A|B|"]


@pytest.mark.parametrize("start", [
    b"{\\rtf1{\\fonttbl" + b"\\f1\\fcharset0 " * 100_000,
    b"{\\rtf1{\\fonttbl" + b"\\f1" + b"\\fcharset0 x" * 15_000 + b"}",
    b"{\\rtf1 " + b'{\\field{\\*\\fldinst{HYPERLINK "' * 20_000,
], ids=["fonts", "one font", "links"])  # fmt: skip
@pytest.mark.timeout(60)  # by the square of these lengths it would be hours
def test_rich_text_made_to_keep_the_patterns_busy_ends(tmp_path, start):
    (tmp_path / "a.rtf").write_bytes(start)
    with pytest.raises(AttachmentError, match=r"a\.rtf (is damaged|holds no text)"):
        read_document(tmp_path / "a.rtf", Watch())


def pages(count: int) -> Attachment:
    text = "\n\n".join(f"[Page {number}]\nThe words of page {number}.\n[Page 9]" for number in range(1, count + 1))
    return Attachment("a.pdf", text, "pdf", count, count)


def test_the_first_part_of_a_document_is_whole_pages_and_names_the_missing(tmp_path):
    part = first_part(pages(4), 0.6)
    assert part is not None and (part.pages, part.of_pages) == (2, 4)
    assert part.text == pages(2).text + "\n\n[Pages 3 to 4 were not read.]"
    again = first_part(part, 0.5)
    assert again is not None and (again.pages, again.of_pages) == (1, 4) and again.text.endswith("[Pages 2 to 4 were not read.]")
    assert first_part(pages(4), 0.1) is None and first_part(pages(4), -2.0) is None


def test_the_first_part_of_a_text_is_whole_lines():
    part = first_part(Attachment("a.txt", "one two\nthree four\nfive"), 0.8)
    assert part is not None and part.text == "one two\nthree four\n\n[The rest was left out.]"
    assert first_part(Attachment("a.txt", "one two"), 0.0) is None
