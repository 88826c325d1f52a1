"""Word documents as Markdown: what is kept, and what damaged and hostile ones end in."""

from __future__ import annotations

import zipfile

import pytest

from app.core.attachments import AttachmentError
from app.core.documents.watch import Watch
from app.core.documents.word import read_word
from engine import Cancelled
from tests.app.core.documents.made import WORD, paragraph, relationships, table, word


def text_of(path) -> str:
    return read_word(path, Watch()).text


def test_a_bar_in_a_cell_does_not_part_it(tmp_path):
    path = word(tmp_path / "a.docx", table([["a|b", "c"], ["1", "2"]]))
    assert read_word(path, Watch()).text == "| a\\|b | c |\n| --- | --- |\n| 1 | 2 |"


def test_headings_lists_and_tables_are_markdown_and_signs_stay_as_they_were_written(tmp_path):
    item = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    numbering = f"""<w:numbering xmlns:w="{WORD}"><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/>
        </w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>"""
    styles = f"""<w:styles xmlns:w="{WORD}"><w:style w:type="paragraph" w:styleId="berschrift1">
        <w:name w:val="heading 1"/></w:style></w:styles>"""
    links = relationships(("n", "numbering", "numbering.xml"), ("s", "styles", "styles.xml"))
    body = [
        paragraph("Jahresbericht", style="berschrift1"), paragraph("Größe: 3 * 4 = 12, a_b_c & <x>."),
        paragraph("Äpfel", marks=item),
        paragraph("Birnen", marks=item), table([["Stadt", "Einwohner"], ["Köln", "1.080.000"], ["Ohne", ""]]),
    ]  # fmt: skip
    parts = {"word/numbering.xml": numbering, "word/styles.xml": styles, "word/_rels/document.xml.rels": links}
    file = read_word(word(tmp_path / "a.docx", "".join(body), parts=parts), Watch())
    assert file.text.split("\n") == [
        "# Jahresbericht", "", "Größe: 3 * 4 = 12, a_b_c & <x>.", "", "- Äpfel", "- Birnen", "",
        "| Stadt | Einwohner |", "| --- | --- |", "| Köln | 1.080.000 |", "| Ohne |  |",
    ]  # fmt: skip
    assert (file.name, file.kind, file.pages) == ("a.docx", "docx", 0)


def test_addresses_of_the_web_stay_and_no_picture_or_other_file_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_arguments: pytest.fail("something was fetched"))
    (tmp_path / "secret.png").write_bytes(b"secret")
    links = relationships(
        ("w", "hyperlink", "https://example.org/"), ("p", "image", "file:///etc/hostname"), ("q", "image", "secret.png")
    )
    link = '<w:p><w:hyperlink r:id="w"><w:r><w:t>our site</w:t></w:r></w:hyperlink></w:p>'
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    pictures = "".join(
        f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{drawing}/wordprocessingDrawing"><a:graphic xmlns:a="{drawing}/main">'
        "<a:graphicData>"
        f'<pic:pic xmlns:pic="{drawing}/picture"><pic:blipFill><a:blip r:{how}="{name}"/></pic:blipFill></pic:pic>'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
        for how, name in (("link", "p"), ("embed", "q"))
    )
    path = word(tmp_path / "a.docx", link + pictures + paragraph("End"), parts={"word/_rels/document.xml.rels": links})
    assert text_of(path) == "[our site](https://example.org/)\n\nEnd"


def test_notes_at_the_foot_are_read_too(tmp_path):
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2">{paragraph("As of May.")}</w:footnote></w:footnotes>'
    links = relationships(("f", "footnotes", "footnotes.xml"))
    body = '<w:p><w:r><w:t>Prices</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    path = word(tmp_path / "a.docx", body, parts={"word/footnotes.xml": notes, "word/_rels/document.xml.rels": links})
    assert text_of(path).startswith("Prices[1]") and "1. As of May." in text_of(path)


@pytest.mark.parametrize("head", [
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>',
], ids=["a file", "unfolding"])  # fmt: skip
def test_entities_are_refused_before_they_are_read(tmp_path, head, monkeypatch):
    path = word(tmp_path / "a.docx", "<w:p><w:r><w:t>&e;&c;</w:t></w:r></w:p>", head=head)
    monkeypatch.setattr("mammoth.convert_to_html", lambda *_arguments, **_more: pytest.fail("it was read"))
    with pytest.raises(AttachmentError, match=r"a\.docx is damaged: it cannot be read\."):
        read_word(path, Watch())


@pytest.mark.parametrize("main", ["word/document.xml", "word/media/image1.png"])
def test_parts_that_unpack_to_too_much_are_never_unpacked(tmp_path, monkeypatch, main):
    path = word(tmp_path / "bomb.docx", "<w:p/>" * 5_000_000, main=main)
    assert path.stat().st_size < 200_000
    unpack, unpacked = zipfile.ZipExtFile.read, []
    monkeypatch.setattr("zipfile.ZipExtFile.read", lambda *read: unpacked.append(unpack(*read)) or unpacked[-1])
    with pytest.raises(AttachmentError, match=r"bomb\.docx (unpacks to more than a document holds|is damaged)"):
        read_word(path, Watch())
    assert sum(map(len, unpacked)) < 10_000


def test_more_text_than_a_message_holds_is_refused_before_the_long_work(tmp_path, monkeypatch):
    monkeypatch.setattr("mammoth.convert_to_html", lambda *_arguments, **_more: pytest.fail("it was read"))
    path = word(tmp_path / "a.docx", paragraph("word " * 1_000) * 900)
    with pytest.raises(AttachmentError, match=r"a\.docx holds more than the 1,000,000 characters of a message: attach a part"):
        read_word(path, Watch())


def test_what_is_no_whole_word_document_is_refused_in_words(tmp_path):
    whole = word(tmp_path / "whole.docx", paragraph("x")).read_bytes()
    half, other, deep = tmp_path / "half.docx", tmp_path / "table.xlsx", tmp_path / "deep.docx"
    half.write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(other, "w") as into:
        into.writestr("[Content_Types].xml", "<Types/>")
        into.writestr("xl/workbook.xml", "<workbook/>")
    word(deep, "<w:tbl><w:tr><w:tc>" * 2_000 + "</w:tc></w:tr></w:tbl>" * 2_000)
    for path, words in (
        (half, "half.docx is damaged"), (deep, "deep.docx is damaged"), (word(tmp_path / "e.docx", ""), "e.docx holds no text"),
        (other, r"table\.xlsx cannot be attached: text, code, PDF, Word \(\.docx\) and RTF can"),
    ):  # fmt: skip
        with pytest.raises(AttachmentError, match=words):
            read_word(path, Watch())


def test_who_no_longer_waits_and_time_that_is_over_end_the_work(tmp_path):
    path = word(tmp_path / "a.docx", paragraph("x"))
    watch = Watch()
    watch.cancel()
    with pytest.raises(Cancelled):
        read_word(path, watch)
    with pytest.raises(AttachmentError, match=r"a\.docx takes too long to read: attach a part of it\."):
        read_word(path, Watch(limit_s=-1))
