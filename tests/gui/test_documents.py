"""PDF and Word files in the window: read beside its thread, told on their chips, sent, found again, and refused in words."""

from __future__ import annotations

import sys
import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QInputDialog, QLineEdit

from app.core.chat import Attachment
from app.services import reading
from tests.app.core.documents.made import drawn, lines, paragraph, pdf, word
from tests.gui.conftest import load, wait_ready
from tests.gui.test_attachments import drop, mime, names
from tests.gui.test_window import write


@pytest.fixture
def report(tmp_path):
    return pdf(tmp_path / "report.pdf", drawn(lines(["Alpha grows"])), drawn(lines(["Beta shrinks"])))


@pytest.fixture
def gate(monkeypatch):
    """Lets no document be read before it is opened."""
    gate, read = threading.Event(), reading.read_document

    def held(path, watch, password):
        while not gate.wait(0.01):
            watch.check()
        return read(path, watch, password)

    monkeypatch.setattr(reading, "read_document", held)
    yield gate
    gate.set()


def wait_read(qtbot, window) -> None:
    qtbot.waitUntil(lambda: not window.composer.chips.readings, timeout=20_000)


def test_documents_come_by_drop_and_paste_and_go_with_the_message_as_text(qtbot, window, report, tmp_path, loader):
    drop(window, report)
    window.composer.edit.insertFromMimeData(mime(word(tmp_path / "plan.docx", paragraph("Gamma stays"))))
    wait_read(qtbot, window)
    assert names(window) == ["report.pdf", "plan.docx"]
    write(qtbot, window, "Sum up")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    asked = loader.engines[-1].requests[-1].messages[-1].content
    assert asked == (
        "report.pdf:\n```\n[Page 1]\nAlpha grows\n\n[Page 2]\nBeta shrinks\n```\n\nplan.docx:\n```\nGamma stays\n```\n\nSum up"
    )
    sent = window.transcript._mounted[window.services.conversation.messages[0].id].attachments
    assert [button.text() for button in sent.buttons] == [
        "report.pdf · PDF · 2 pages · 43 characters", "plan.docx · Word · 11 characters",
    ]  # fmt: skip
    sent.buttons[0].click()
    assert "[Page 2]\nBeta shrinks" in sent._files[0].text.toPlainText()
    assert [hit.chat.title for hit in window.services.store.search("shrinks")] == ["Sum up"]


def test_a_chip_tells_how_far_it_is_and_then_the_kind_the_pages_and_the_tokens(qtbot, window, report, gate):
    window.writing.add_files([report])
    (chip,) = window.composer.chips.readings
    assert chip.figure == "reading …"
    chip.show_pages(4, 12)
    told = QAccessible.queryAccessibleInterface(chip).text(QAccessible.Text.Name)
    assert chip.figure == "reading page 5 of 12 …" and "report.pdf" in told and "5 of 12" in told
    gate.set()
    wait_read(qtbot, window)
    qtbot.waitUntil(lambda: "token" in window.composer.chips.chips[0].figure, timeout=20_000)
    assert window.composer.chips.chips[0].figure.startswith("PDF · 2 pages · ")


def test_nothing_is_sent_while_a_document_is_read_and_what_was_written_stays(qtbot, window, report, gate):
    window.writing.add_files([report])
    write(qtbot, window, "Sum up")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.banner.text == "report.pdf is still being read: wait a moment, or remove it."
    assert window.composer.text() == "Sum up" and not window.services.conversation.messages
    gate.set()
    wait_read(qtbot, window)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[0].attachments[0].pages == 2


@pytest.mark.parametrize("how", ["key", "undo"])
def test_removing_the_chip_ends_the_reading_and_the_next_document_goes_on(qtbot, window, report, tmp_path, gate, how):
    window.composer.edit.insertFromMimeData(mime(report))
    job = window.services.reading._jobs[0]
    if how == "key":
        qtbot.keyClick(window.composer.chips.readings[0], Qt.Key.Key_Delete)
    else:
        qtbot.keyClick(window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.composer.chips.isHidden() and not window.services.reading._jobs
    qtbot.waitUntil(lambda: not window.services.reading._background.busy, timeout=20_000)
    with pytest.raises(Exception, match="nobody waits"):
        job.watch.check()
    window.writing.add_files([word(tmp_path / "plan.docx", paragraph("x"))])
    gate.set()
    wait_read(qtbot, window)
    assert names(window) == ["plan.docx"]


def test_undo_takes_a_pasted_document_back_also_when_it_was_read_meanwhile(qtbot, window, report):
    window.composer.edit.insertFromMimeData(mime(report))
    wait_read(qtbot, window)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert names(window) == [] and window.composer.text() == ""


def test_a_document_stays_with_the_draft_that_it_was_dropped_on(qtbot, window, report, tmp_path, gate):
    write(qtbot, window, "First")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.chat.id
    window.writing.add_files([report, word(tmp_path / "plan.docx", paragraph("x"))])
    write(qtbot, window, "and this")
    window.do.new_chat()
    assert window.composer.chips.isHidden()
    window.do.open_chat(first)
    assert [chip.name for chip in window.composer.chips.readings] == ["report.pdf", "plan.docx"]
    window.do.new_chat()
    gate.set()
    qtbot.waitUntil(lambda: not window.services.reading._jobs, timeout=20_000)
    assert not window.composer.has_content
    window.do.open_chat(first)
    assert names(window) == ["report.pdf", "plan.docx"] and window.composer.text() == "and this"
    assert window.composer.attachments[0].pages == 2


def test_a_locked_pdf_asks_for_its_password_and_again_where_that_is_wrong(qtbot, window, report, tmp_path):
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=report)
    writer.encrypt("open", "owner", algorithm="AES-256")
    writer.write(tmp_path / "locked.pdf")
    window.writing.add_files([tmp_path / "locked.pdf"])
    for password, words in (
        ("wrong", "locked.pdf is locked with a password."),
        ("open", "This password does not open locked.pdf."),
    ):
        qtbot.waitUntil(lambda words=words: window.banner.text == words, timeout=20_000)
        window.banner.action.click()
        dialog = window.findChildren(QInputDialog)[-1]
        assert dialog.textEchoMode() == QLineEdit.EchoMode.Password
        dialog.setTextValue(password)
        dialog.accept()
    qtbot.waitUntil(lambda: names(window) == ["locked.pdf"], timeout=20_000)


def locked(path, report):
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=report)
    writer.encrypt("open")
    writer.write(path)
    return path


def test_files_that_came_together_are_told_together_and_each_password_is_asked_for(qtbot, window, report, tmp_path):
    first, second = (locked(tmp_path / name, report) for name in ("first.pdf", "second.pdf"))
    (tmp_path / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99)
    (tmp_path / "bad.docx").write_bytes(b"PK\x03\x04" + b"junk" * 99)
    (tmp_path / "worse.docx").write_bytes(b"PK\x03\x04" + b"junk" * 99)
    window.writing.add_files([first, second, tmp_path / "bad.docx", tmp_path / "old.doc", tmp_path / "worse.docx"])
    wait_read(qtbot, window)
    assert window.banner.text == (
        "old.doc cannot be attached: text, code, PDF, Word (.docx) and RTF can. first.pdf is locked with a password. "
        "second.pdf is locked with a password. 2 more files have problems."
    )
    for left in (["second.pdf is locked with a password."], []):
        window.banner.action.click()
        dialog = window.findChildren(QInputDialog)[-1]
        dialog.setTextValue("open")
        dialog.accept()
        assert window.banner.text == " ".join(left)
        wait_read(qtbot, window)
    assert names(window) == ["first.pdf", "second.pdf"]


def test_a_later_file_takes_no_offer_to_enter_a_password_away(qtbot, window, report, tmp_path):
    window.writing.add_files([locked(tmp_path / "locked.pdf", report)])
    wait_read(qtbot, window)
    window.writing.add_files([report])
    wait_read(qtbot, window)
    window.banner.action.click()
    dialog = window.findChildren(QInputDialog)[-1]
    assert "locked.pdf" in dialog.labelText()
    dialog.reject()


def test_what_a_document_of_another_chat_ran_into_is_told_there(qtbot, window, tmp_path, gate):
    write(qtbot, window, "First")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    first = window.services.conversation.chat.id
    (tmp_path / "bad.docx").write_bytes(b"PK\x03\x04" + b"junk" * 99)
    window.writing.add_files([tmp_path / "bad.docx"])
    window.do.new_chat()
    gate.set()
    qtbot.waitUntil(lambda: not window.services.reading._jobs, timeout=20_000)
    assert window.banner.text == ""
    window.do.open_chat(first)
    wait_read(qtbot, window)
    assert window.banner.text == "bad.docx is damaged: it cannot be read."
    window.do.new_chat()
    window.do.open_chat(first)
    assert window.banner.text == "" and not window.services.reading._jobs


def test_documents_that_are_being_read_at_a_quit_are_read_at_the_next_start(
    qtbot, make_services, make_window, report, tmp_path, gate
):
    before = make_services()
    window = make_window(before)
    window.writing.add_files([report, word(tmp_path / "plan.docx", paragraph("x"))])
    write(qtbot, window, "Sum up")
    window.retire()
    before.shutdown(20.0)
    gate.set()
    after = make_window(make_services())
    wait_read(qtbot, after)
    assert names(after) == ["report.pdf", "plan.docx"] and after.composer.text() == "Sum up"
    after.composer.chips.clear()
    after.writing.save()
    assert after.services.store.setting("draft:new", "") == "Sum up"


def test_a_document_that_was_moved_between_two_starts_is_said_to_be_missing(qtbot, make_services, make_window, report, gate):
    before = make_services()
    window = make_window(before)
    window.writing.add_files([report])
    window.retire()
    before.shutdown(20.0)
    report.unlink()
    gate.set()
    after = make_window(make_services())
    wait_read(qtbot, after)
    assert after.banner.text == "report.pdf is not there: it may have been moved."


def test_what_cannot_be_read_is_told_in_the_banner_and_leaves_no_chip(qtbot, window, tmp_path):
    scan = pdf(tmp_path / "scan.pdf", b"0 0 9 9 re f")
    window.writing.add_files([scan])
    wait_read(qtbot, window)
    assert window.banner.text == "scan.pdf holds no text, or only pictures of it: Slipstream cannot read those yet."
    (tmp_path / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99)
    window.writing.add_files([tmp_path / "old.doc"])
    assert window.banner.text == "old.doc cannot be attached: text, code, PDF, Word (.docx) and RTF can."
    assert window.composer.chips.isHidden() and not window.composer.button.isEnabled()


def test_a_fault_of_ours_while_reading_is_told_and_the_next_document_is_read(qtbot, window, report, monkeypatch):
    read = reading.read_document
    monkeypatch.setattr(reading, "read_document", lambda *_arguments: 1 / 0)
    window.writing.add_files([report])
    wait_read(qtbot, window)
    assert "Something went wrong (ZeroDivisionError)" in window.banner.text
    monkeypatch.setattr(reading, "read_document", read)
    window.writing.add_files([report])
    wait_read(qtbot, window)
    assert names(window) == ["report.pdf"]


def test_pages_beyond_a_message_are_named_on_the_chip_and_in_the_banner(qtbot, window, report, monkeypatch):
    monkeypatch.setattr("app.core.documents.pdf.ROOM", 30)
    window.writing.add_files([report])
    wait_read(qtbot, window)
    assert window.banner.text.startswith("The first 1 of 2 pages of report.pdf were read")
    assert window.composer.chips.chips[0].figure.startswith("PDF · 1 of 2 pages · ")


@pytest.mark.parametrize("kind", ["pages", "text"])
def test_a_file_too_long_for_the_model_can_be_kept_as_far_as_it_fits(qtbot, window, loader, kind):
    loader.script.context_length = 100
    load(qtbot, window.services.client)
    page = "word " * 30
    text = "\n\n".join(f"[Page {number}]\n{page}" for number in range(1, 9)) if kind == "pages" else f"{page}\n" * 8
    window.composer.add(Attachment("long.pdf", text, "pdf", 8, 8) if kind == "pages" else Attachment("long.txt", text))
    fits = "its first 2 of 8 pages fit" if kind == "pages" else "of it fits"
    qtbot.waitUntil(lambda: fits in window.banner.text, timeout=20_000)
    window.banner.action.click()
    qtbot.waitUntil(lambda: window.composer.context.fill in ("fits", "nearly full"), timeout=20_000)
    (kept,) = window.composer.attachments
    assert (kept.pages, kept.of_pages) == ((2, 8) if kind == "pages" else (0, 0)) and kept.text.count("word") >= 30
    assert window.banner.text == ""


def test_python_hands_over_more_often_only_while_a_document_is_read(qtbot, window, report, gate):
    usual = sys.getswitchinterval()
    window.writing.add_files([report])
    assert sys.getswitchinterval() < usual
    gate.set()
    wait_read(qtbot, window)
    assert sys.getswitchinterval() == usual


def test_a_window_that_closes_ends_the_reading(qtbot, window, report, gate):
    window.writing.add_files([report])
    usual = window.services.reading._usual_s
    window.services.reading.stop()
    assert not window.services.reading._background.busy and sys.getswitchinterval() == usual
