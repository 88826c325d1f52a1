"""Prompt files: both kinds of line, and the line that is wrong named before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.bench.suite import read_suite
from engine.errors import RequestError
from engine.request import Message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prompts.jsonl"


def test_both_kinds_of_line_are_read_in_order(file: Path) -> None:
    file.write_text(
        '{"id": "one", "prompt": "Hi"}\n\n{"id": 2, "messages": [{"role": "system", "content": "Short."},'
        ' {"role": "user", "content": "Bye"}]}\n'
    )
    first, second = read_suite(file)
    assert (first.id, first.messages) == ("one", (Message("user", "Hi"),))
    assert (second.id, second.messages) == ("2", (Message("system", "Short."), Message("user", "Bye")))


def test_line_breaks_of_unicode_inside_a_prompt_do_not_cut_the_line(file: Path) -> None:
    text = "one\u2028two\u2029three\x85four"
    file.write_text('{"id": "a", "prompt": "' + text + '"}\r\n{"id": "b", "prompt": "x"}', encoding="utf-8")
    assert [prompt.messages[0].content for prompt in read_suite(file)] == [text, "x"]


def test_a_byte_order_mark_does_no_harm(file: Path) -> None:
    file.write_text('{"id": "a", "prompt": "x"}', encoding="utf-8-sig")
    assert [prompt.id for prompt in read_suite(file)] == ["a"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "3",
        '"prompt"',
        "{}",
        '{"id": "a"}',
        '{"prompt": "x"}',
        '{"id": "a", "prompt": 5}',
        '{"id": "a", "prompt": "  "}',
        '{"id": "a", "messages": []}',
        '{"id": "a", "messages": "x"}',
        '{"id": "a", "messages": [{"role": "user"}]}',
        '{"id": "a", "messages": [{"role": "robot", "content": "x"}, {"role": "user", "content": "x"}]}',
        '{"id": "a", "messages": [{"role": ["user"], "content": "x"}]}',
        '{"id": "a", "messages": [{"role": "assistant", "content": "x"}]}',
    ],
)
def test_a_line_that_is_wrong_is_named(file: Path, line: str) -> None:
    file.write_text('{"id": "fine", "prompt": "x"}\n' + line + "\n")
    with pytest.raises(RequestError, match=r"prompts\.jsonl:2: ") as caught:
        read_suite(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(RequestError, match="is empty"):
        read_suite(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, file: Path) -> None:
    file.write_bytes(b'{"id": "\xff"}')
    for path in (file, tmp_path, tmp_path / "missing"):
        with pytest.raises(RequestError, match="cannot be read"):
            read_suite(path)


def test_the_projects_own_suite_has_many_prompts_of_all_kinds() -> None:
    prompts = read_suite()
    assert len(prompts) >= 20 and len({prompt.id for prompt in prompts}) == len(prompts)
    assert any(len(prompt.messages) > 2 for prompt in prompts)
    assert any(any(ord(character) > 0x1F000 for character in prompt.messages[-1].content) for prompt in prompts)
    assert any("\u4e00" <= character <= "\u9fff" for prompt in prompts for character in prompt.messages[-1].content)
