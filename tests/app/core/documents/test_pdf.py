"""PDFs as text: the order a reader reads in, what is told of pages, and what locked, damaged and hostile ones end in."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QPdfWriter, QTextDocument

from app.core.attachments import LONGEST, AttachmentError
from app.core.chat import Attachment
from app.core.documents import pdf as reader
from app.core.documents.hyphens import joined
from app.core.documents.pdf import PasswordNeeded, read_pdf
from app.core.documents.watch import Watch
from engine import Cancelled
from tests.app.core.documents.made import FONT, drawn, lines, pdf, raw_pdf, stream

PROSE = (
    "A lease may be ended by", "either side with notice", "of three months, which", "begins with the next", "month, unless both",
    "sides agree on another", "day. The deposit is", "returned when the flat",
)  # fmt: skip
OTHER = (
    "is handed over, less what", "repairs cost. Pets are", "allowed where nobody", "minds, and dogs that", "bark at night are not.",
    "the garden is shared by", "all who live here, and", "so is the cellar.",
)  # fmt: skip


def read(path: Path, password: str = "", watch: Watch | None = None) -> Attachment:
    return read_pdf(path, watch or Watch(), password)


def body(path: Path) -> str:
    """The text of a PDF's one page."""
    mark, text = read(path).text.split("\n", 1)
    assert mark == "[Page 1]"
    return text


def printed(path: Path, html: str) -> Path:
    """What Qt prints, as other programs with fonts of their own do."""
    writer = QPdfWriter(str(path))
    writer.setResolution(96)
    document = QTextDocument()
    document.setHtml(html)
    document.setPageSize(QSizeF(writer.width(), writer.height()))
    document.print_(writer)
    return path


def test_every_page_has_its_number_so_that_an_answer_can_name_it(tmp_path):
    file = read(pdf(tmp_path / "a.pdf", drawn(lines(["One"])), b"", drawn(lines(["Three"]))))
    assert file.text == "[Page 1]\nOne\n\n[Page 2]\n(No text on this page.)\n\n[Page 3]\nThree"
    assert (file.name, file.kind, file.pages, file.of_pages) == ("a.pdf", "pdf", 3, 3)


def test_columns_of_prose_that_are_drawn_row_by_row_are_read_one_after_the_other(tmp_path):
    rows = [place for pair in zip(lines(PROSE), lines(OTHER, x=310), strict=True) for place in pair]
    title, foot = (50, 810, "The lease of a flat"), (50, 40, "Page 1 of 1")
    text = body(pdf(tmp_path / "a.pdf", drawn([title, *rows, foot])))
    assert text.split() == " ".join(["The lease of a flat", *PROSE, *OTHER, "Page 1 of 1"]).split()


def test_the_cells_of_a_row_stay_together_and_apart(tmp_path):
    rows = [["Item", "Number", "Price"], ["Apples", "12", "3.40"], ["Pears", "7", "2.10"], ["Quinces", "3", "9.00"],
            ["Medlars", "1", "0.80"], ["Sloes", "90", "1.10"]]  # fmt: skip
    places = [(x, 700 - 16 * y, cell) for y, row in enumerate(rows) for x, cell in zip((50, 200, 300), row, strict=True)]
    assert body(pdf(tmp_path / "a.pdf", drawn(places))).split("\n") == ["\t".join(row) for row in rows]


def test_long_cells_beside_each_other_are_rows_and_no_columns(tmp_path):
    rows = [(f"Article {number} of the agreement", f"Both sides agreed on day {number}") for number in range(8)]
    places = [(x, 700 - 16 * y, cell) for y, row in enumerate(rows) for x, cell in zip((50, 310), row, strict=True)]
    assert body(pdf(tmp_path / "a.pdf", drawn(places))).split("\n") == ["\t".join(row) for row in rows]


def test_words_that_are_placed_one_by_one_are_one_line(tmp_path):
    places = [(50, 700, "These"), (86, 700, "words"), (124, 700, "are"), (146, 700, "placed")]
    assert body(pdf(tmp_path / "a.pdf", drawn(places))) == "These words are placed"


def test_more_room_between_lines_is_an_empty_line(tmp_path):
    places = [*lines(["First paragraph,", "its second line.", "Its end."]), *lines(["Second paragraph."], top=720)]
    assert body(pdf(tmp_path / "a.pdf", drawn(places))) == "First paragraph,\nits second line.\nIts end.\n\nSecond paragraph."


def test_turned_pages_and_bold_by_drawing_twice_are_read_once_and_in_order(tmp_path):
    turned = b"q 0 1 -1 0 400 50 cm " + drawn(lines(["Turned by a quarter,", "second line"], x=0, top=0)) + b" Q"
    twice = drawn([(50, 300, "Bold"), (50.3, 300, "Bold"), (50, 280, "plain")])
    assert body(pdf(tmp_path / "a.pdf", turned + b"\n" + twice)) == "Turned by a quarter,\nsecond line\nBold\nplain"


def test_ligatures_umlauts_and_other_scripts_are_plain_letters(qapp, tmp_path):
    texts = ["Efficient offices flow. Größe, Übermut.", "日本語の文章です。", "مرحبا بالعالم", "שלום עולם", "Ελληνικά"]
    text = body(printed(tmp_path / "a.pdf", "".join(f"<p>{each}</p>" for each in texts)))
    assert text.split("\n") == texts


def test_divided_words_are_whole_and_hyphens_of_words_stay(tmp_path):
    divided = [
        "This is an exam-", "ple of a well-", "known rule, by e-", "mail from Baden-", "Württemberg. Ein-", "und Ausgabe, 12-",
        "14, co-", "operate and cooperate."
    ]  # fmt: skip
    text = body(pdf(tmp_path / "a.pdf", drawn(lines(divided))))
    assert " ".join(text.split()) == (
        "This is an example of a well-known rule, by e-mail from Baden-Württemberg. Ein- und Ausgabe, 12-14, cooperate and "
        "cooperate."
    )


def test_a_hyphen_stays_or_goes_as_the_word_is_written_elsewhere():
    assert joined("An e-\nmail. One email.") == "An email.\nOne email."
    assert joined("In a co-\nop. Our co-op.") == "In a co-op.\nOur co-op."
    assert joined("An inter\u00ad\nval of soft\u00adness") == "An interval\nof softness"


def test_what_is_filled_into_a_form_follows_the_pages(tmp_path):
    field = b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /TU (Your name) /V (Ada Lovelace) /Rect [0 0 9 9] >>"
    catalogue = b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R] >> >>"
    page = b"<< /Type /Page /Parent 2 0 R /Annots [5 0 R] /Resources << /Font << /F1 3 0 R >> >> /Contents 6 0 R >>"
    pages = b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
    path = raw_pdf(tmp_path / "a.pdf", [catalogue, pages, FONT, page, field, stream(drawn(lines(["Name"])))])
    assert read(path).text == "[Page 1]\nName\n\n[Fields of the form]\nYour name: Ada Lovelace"


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_locked_pdf_asks_for_its_password_and_one_that_anybody_may_read_does_not(tmp_path, algorithm):
    from pypdf import PdfWriter

    plain = pdf(tmp_path / "plain.pdf", drawn(lines(["Behind the lock"])))
    for name, password in (("locked.pdf", "Geheim ü"), ("open.pdf", "")):
        writer = PdfWriter(clone_from=plain)
        writer.encrypt(password, "owner", algorithm=algorithm)
        writer.write(tmp_path / name)
    assert body(tmp_path / "open.pdf") == "Behind the lock"
    with pytest.raises(PasswordNeeded, match=r"locked\.pdf is locked with a password\."):
        read(tmp_path / "locked.pdf")
    with pytest.raises(PasswordNeeded, match=r"This password does not open locked\.pdf\."):
        read(tmp_path / "locked.pdf", "wrong")
    assert read(tmp_path / "locked.pdf", "Geheim ü").text == "[Page 1]\nBehind the lock"


def test_pictures_without_text_and_files_without_pages_are_told_in_words(tmp_path):
    with pytest.raises(AttachmentError, match=r"scan\.pdf holds no text, or only pictures of it: Slipstream cannot"):
        read(pdf(tmp_path / "scan.pdf", b"0 0 100 100 re f", b"0 0 100 100 re f"))
    with pytest.raises(AttachmentError, match=r"none\.pdf has no pages\."):
        read(pdf(tmp_path / "none.pdf"))


def test_a_wrong_table_of_places_is_mended_and_what_cannot_be_is_refused(tmp_path):
    whole = pdf(tmp_path / "a.pdf", drawn(lines(["Still here"]))).read_bytes()
    mended = tmp_path / "mended.pdf"
    mended.write_bytes(whole.replace(b"startxref\n", b"startxref\n7"))
    assert body(mended) == "Still here"
    tree = b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"
    loop = raw_pdf(tmp_path / "loop.pdf", [b"<< /Type /Catalog /Pages 2 0 R >>", tree])
    half, junk = tmp_path / "half.pdf", tmp_path / "junk.pdf"
    half.write_bytes(whole[: len(whole) * 6 // 10])
    junk.write_bytes(b"%PDF-1.4\n" + bytes(range(256)) * 20)
    for path in (loop, half, junk):
        with pytest.raises(AttachmentError, match=rf"{path.name} is damaged: it cannot be read\."):
            read(path)


def test_one_damaged_page_takes_no_other_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "STREAM_PARTS", 1_000)
    path = pdf(tmp_path / "a.pdf", drawn(lines(["One"])), b"1 0 0 rg " * 1_000, drawn(lines(["Three"])))
    assert read(path).text == "[Page 1]\nOne\n\n[Page 2]\n(This page cannot be read.)\n\n[Page 3]\nThree"


def test_control_characters_are_taken_out_as_of_other_texts(tmp_path):
    assert body(pdf(tmp_path / "a.pdf", b"BT /F1 12 Tf 50 700 Td (bell\\007 and\\000 zero) Tj ET")) == "bell and zero"


def test_a_stream_that_unpacks_without_end_ends_in_one_line_and_in_bounded_memory(tmp_path):
    bomb = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>", FONT
    page = b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>"
    path = raw_pdf(tmp_path / "bomb.pdf", [*bomb, page, stream(b" " * 400_000_000, rounds=2)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(AttachmentError, match=r"bomb\.pdf unpacks to more than a document holds: it was not read\."):
        read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB; unpacked it has 400 MB


def test_drawings_within_drawings_that_take_forever_end_at_the_pages_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "PAGE_S", 0.3)
    form = b" /Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X %d 0 R >> >>"
    forms = [stream(b"/X Do " + b"0 g " * 100_000, form % (7 + place)) for place in range(60)]
    path = pdf(tmp_path / "a.pdf", b"/X Do", page=b"/XObject << /X 6 0 R >>", more=forms)
    with pytest.raises(AttachmentError, match="takes too long to read"):
        read(path)
    monkeypatch.setattr(reader, "PAGE_S", -1.0)
    monkeypatch.setattr("pypdf.PageObject.extract_xform_text", lambda *_arguments, **_more: pytest.fail("it went on"))
    with pytest.raises(AttachmentError, match="takes too long to read"):
        read(path)


def test_as_many_pages_are_read_as_a_message_holds_and_the_others_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "ROOM", 3_000)
    file = read(pdf(tmp_path / "a.pdf", *[drawn(lines(["word " * 200])) for _ in range(5)]))
    assert (file.pages, file.of_pages) == (2, 5) and file.text.endswith("[Pages 3 to 5 were not read.]")
    assert reader.ROOM < LONGEST


def test_time_that_is_over_leaves_the_pages_that_were_read_and_refuses_where_there_are_none(tmp_path):
    path = pdf(tmp_path / "a.pdf", *[drawn(lines([f"Page {number}"])) for number in range(3)])
    with pytest.raises(AttachmentError, match=r"a\.pdf takes too long to read: attach a part of it\."):
        read(path, watch=Watch(limit_s=-1))
    watch = Watch(lambda done, _total: setattr(watch, "_ends", -1.0) if done == 2 else None)
    assert (read(path, watch=watch).pages) == 2


def test_how_far_it_is_is_told_and_who_no_longer_waits_ends_it(tmp_path):
    told: list[tuple[int, int]] = []
    path = pdf(tmp_path / "a.pdf", *[drawn(lines(["x"]))] * 4)
    read(path, watch=Watch(lambda *far: told.append(far)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]
    watch = Watch(lambda done, _total: watch.cancel() if done == 2 else None)
    with pytest.raises(Cancelled):
        read(path, watch=watch)


def test_nothing_in_a_pdf_is_run_or_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_arguments: pytest.fail("something was fetched"))
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_arguments, **_more: pytest.fail("something was run"))
    jbig2 = b"/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /JBIG2Decode"
    actions = b"/AA << /O << /S /Launch /F (/bin/sh) >> >>"
    links = b"/Annots [<< /Subtype /Link /A << /S /URI /URI (http://127.0.0.1:9/) >> >>]"
    image = b"<< %s /Length 4 >>\nstream\nabcd\nendstream" % jbig2
    content = drawn(lines(["Safe"])) + b" q 9 0 0 9 0 0 cm /X Do Q"
    page = b"/XObject << /X 6 0 R >> >> " + actions + links + b" /B << "
    assert body(pdf(tmp_path / "a.pdf", content, page=page, more=[image])) == "Safe"
