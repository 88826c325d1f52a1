"""What counts as a text file, told by its content, and what is refused with what words."""

from __future__ import annotations

import codecs
import os

import pytest

from app.core.attachments import HUGE_CHARACTERS, HUGE_LINES, LARGEST_FILE, AttachmentError, is_huge, pasted, read_file

TEXT = "naïve = 'Ünï'\r\n\t# 虹\n"
READ = "naïve = 'Ünï'\n\t# 虹\n"


@pytest.mark.parametrize("content", [
    TEXT.encode(), codecs.BOM_UTF8 + TEXT.encode(), TEXT.encode("utf-16"), codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    TEXT.encode("utf-32"),
], ids=["utf-8", "utf-8 with mark", "utf-16", "utf-16 big-endian", "utf-32"])  # fmt: skip
@pytest.mark.parametrize("name", ["main.py", "noextension", "Übung ✓.txt"])
def test_text_is_told_by_its_content_whatever_its_name(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    file = read_file(tmp_path / name)
    assert (file.name, file.text) == (name, READ)


def test_utf16_without_a_mark_is_read_too(tmp_path):
    for encoding in ("utf-16-le", "utf-16-be"):
        (tmp_path / "a.txt").write_bytes("plain ASCII text\n".encode(encoding))
        assert read_file(tmp_path / "a.txt").text == "plain ASCII text\n"


@pytest.mark.parametrize("content", [
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", bytes(range(256)), b"text\x00text",
    b"%PDF-1.7\n\xe2\xe3\x01",
], ids=["png", "all bytes", "zero byte", "pdf"])  # fmt: skip
def test_binary_files_are_refused_in_words(tmp_path, content):
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(AttachmentError, match=r"x\.txt cannot be attached: text, code, PDF"):
        read_file(tmp_path / "x.txt")


def test_text_in_an_old_encoding_is_called_text_and_what_to_do_is_said(tmp_path):
    (tmp_path / "brief.txt").write_bytes("Grüße aus Köln\r\n".encode("cp1252") * 9)
    with pytest.raises(AttachmentError, match=r"brief\.txt is in an old encoding: save it as UTF-8 and attach it again\."):
        read_file(tmp_path / "brief.txt")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    with (tmp_path / "big.log").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(AttachmentError, match=r"big\.log has .* and a message holds .*: attach a part"):
        read_file(tmp_path / "big.log")


def test_folders_missing_files_and_pipes_are_refused_in_words(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "gone.txt", "is not there"), (tmp_path / "pipe", "is not there")):
        with pytest.raises(AttachmentError, match=words):
            read_file(path)


def test_an_empty_file_is_an_empty_text(tmp_path):
    (tmp_path / "e").touch()
    assert read_file(tmp_path / "e").text == ""


def test_what_is_too_long_to_look_over_is_huge():
    assert not is_huge("word " * (HUGE_CHARACTERS // 5)) and is_huge("word " * (HUGE_CHARACTERS // 5) + "x")
    assert not is_huge("a\n" * (HUGE_LINES - 1)) and is_huge("a\n" * HUGE_LINES)


def test_pasted_texts_get_names_of_their_own():
    first = pasted("x", set())
    assert pasted("y", {first.name}).name not in ("", first.name)
