"""Cleaning keeps everything that can be read; long runs are broken for display only."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.sanitize import BREAK, break_long_runs, clean_text, cut_text

any_text = st.one_of(st.text(st.characters(exclude_categories=())), st.text("ab \t\r\n\x00\x1b\x7f\x85\ud83d\ude00é👩\u200d"))


def is_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"


@given(any_text)
def test_cleaned_text_can_be_stored_and_shown(text: str):
    cleaned = clean_text(text)
    cleaned.encode()
    assert all(unicodedata.category(char) != "Cc" or char in "\n\t" for char in cleaned)
    assert clean_text(cleaned) == cleaned


@given(any_text.filter(lambda text: not any(map(is_surrogate, text))))
def test_nothing_but_control_characters_is_lost(text: str):
    without = text.replace("\r\n", "\n").replace("\r", "\n")
    assert clean_text(text) == "".join(char for char in without if char in "\n\t" or unicodedata.category(char) != "Cc")


@given(st.lists(st.sampled_from(["a", "\ud83d", "\ude00", "日"])))
def test_every_surrogate_becomes_a_sign_that_something_was_there_unless_two_make_a_character(parts: list[str]):
    text = "".join(parts)
    expected = re.sub("[\ud800-\udfff]", "\ufffd", re.sub("\ud83d\ude00", "😀", text))
    assert clean_text(text) == expected


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"), ("\x00a\x1b[31mred", "a[31mred"), ("tab\there", "tab\there"), ("\ud800", "\ufffd"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"), ("\ufeffbom", "\ufeffbom"), ("e\u0301", "e\u0301"), ("", ""),
    ],
)  # fmt: skip
def test_cleaning_of_known_cases(text: str, cleaned: str):
    assert clean_text(text) == cleaned


@given(st.text("ab \n日👩\u200d\u0301🇩🇪", max_size=200), st.integers(1, 20))
def test_breaking_long_runs_adds_breaks_and_nothing_else(text: str, limit: int):
    broken = break_long_runs(text, limit)
    assert broken.replace(BREAK, "") == text
    assert all(len(run) <= limit for run in re.split(rf"[\s{BREAK}]", broken))
    if all(len(run) <= limit for run in text.split()):
        assert broken == text


def test_a_joined_emoji_is_not_taken_apart():
    family = "👩\u200d👩\u200d👧"
    broken = break_long_runs(family * 100, 12)
    assert all(run == family * 2 for run in broken.split(BREAK))


def test_a_megabyte_without_a_space_is_broken_in_linear_work():
    text = "x" * 1_000_000
    assert [len(run) for run in break_long_runs(text).split(BREAK)] == [2000] * 500


@given(st.text("ab \n👩\u200d", max_size=200), st.integers(2, 30))
def test_pieces_of_a_text_are_short_and_hold_everything_but_the_line_ends_between_them(text: str, limit: int):
    pieces = cut_text(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    # An empty line may be a piece of its own, so which of several line ends went is for the pattern to find out.
    assert re.fullmatch("\n?".join(map(re.escape, pieces)), text)


def test_a_text_is_cut_at_its_lines_then_at_its_words_then_anywhere():
    assert cut_text("one\ntwo three", 6) == ["one", "two ", "three"]
    assert cut_text("abcdefgh", 3) == ["abc", "def", "gh"]
    assert cut_text("short", 5) == ["short"]
    assert cut_text("a\n\n\na", 2) == ["a", "\n", "a"]
