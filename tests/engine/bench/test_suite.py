"""Prompt files: both kinds of line, and the line that is wrong named before anything is measured."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path

import pytest

from engine.bench.suite import Prompt, read_suite, short_suite
from engine.errors import RequestError
from engine.request import Message

RECIPE = Path(__file__).parents[3] / "packaging" / "starter_draft"
TRAINING_TURNS = 20_000


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
        with pytest.raises(RequestError, match=r"cannot be read \([^\[{]+\): give a file of JSON lines"):
            read_suite(path)


def test_a_line_that_is_not_json_is_named_in_plain_words(file: Path) -> None:
    file.write_text('{"id": "a", "prompt": "b"}\nnope\n')
    with pytest.raises(RequestError, match=r":2: this is not JSON; a line is"):
        read_suite(file)


def test_the_projects_own_suite_has_many_prompts_of_all_kinds() -> None:
    prompts = read_suite()
    assert len(prompts) == 60 and len({prompt.id for prompt in prompts}) == len(prompts)
    assert any(len(prompt.messages) > 2 for prompt in prompts)
    assert any(any(ord(character) > 0x1F000 for character in prompt.messages[-1].content) for prompt in prompts)
    assert any("\u4e00" <= character <= "\u9fff" for prompt in prompts for character in prompt.messages[-1].content)


def kinds(prompts: list[Prompt]) -> set[str]:
    return {prompt.id.partition("-")[0] for prompt in prompts}


def test_every_kind_of_prompt_is_in_the_short_suite_too() -> None:
    prompts = read_suite()
    assert kinds(prompts) == {"code", "prose", "list", "translate", "math", "json", "copy", "edit", "summary", "chat"}
    assert kinds(short_suite()) == kinds(prompts) and len(short_suite()) == 20
    assert sum(prompt.id.startswith(("copy-", "edit-")) for prompt in prompts) >= 6


def plain_words(text: str) -> str:
    """Lower case and single spaces, without the marks at the end."""
    return " ".join(text.lower().split()).rstrip(".?! ")


def user_texts(prompts: list[Prompt]) -> dict[str, str]:
    """Every user turn of ``prompts``, simplified, to the id it belongs to."""
    return {plain_words(m.content): prompt.id for prompt in prompts for m in prompt.messages if m.role == "user"}


def test_no_prompt_is_one_that_the_starter_draft_was_chosen_by() -> None:
    chosen_by = user_texts(read_suite(RECIPE / "eval_prompts.jsonl"))
    for text, name in user_texts(read_suite()).items():
        assert not [other for other in chosen_by if text in other or other in text], name


def test_no_prompt_could_have_been_one_of_the_starter_drafts_training_turns() -> None:
    """Training turns are put together from phrases: none of the longer ones, and none of many turns, occurs in a prompt."""
    words = json.loads((RECIPE / "topics.json").read_text("utf-8"))
    phrases = {plain_words(phrase) for group in words.values() for phrase in group if len(phrase.split()) >= 4}
    user_turn, numbers = runpy.run_path(str(RECIPE / "prompts.py"))["user_turn"], random.Random(0)
    drawn = [user_turn(numbers, True) for _ in range(TRAINING_TURNS)]
    turns = {plain_words(text) for text, complete in drawn if complete}
    assert len(phrases) > 100 and len(turns) > TRAINING_TURNS / 4
    for text, name in user_texts(read_suite()).items():
        assert not [phrase for phrase in phrases if phrase in text], name
        assert not [turn for turn in turns if turn in text], name
