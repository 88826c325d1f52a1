"""Names are found by some of their letters, the likeliest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.fuzzy import fuzzy_score

NAMES = ["New Chat", "Search Chats", "Next Chat", "Rename Chat", "Actual Text Size", "Show Log", "Choose Model", "Export Chat"]


def best(typed: str) -> str:
    scores = {name: score for name in NAMES if (score := fuzzy_score(typed, name)) is not None}
    return max(scores, key=scores.__getitem__)


def test_initials_and_beginnings_win():
    assert [best(typed) for typed in ("nc", "sl", "rch", "ats", "exp", "model", "CHOOSE m")] == [
        "New Chat", "Show Log", "Rename Chat", "Actual Text Size", "Export Chat", "Choose Model", "Choose Model",
    ]  # fmt: skip


def test_letters_that_are_not_there_in_order_find_nothing():
    assert fuzzy_score("tahc", "Chat") is None and fuzzy_score("chatz", "Chat") is None and fuzzy_score("", "Chat") == 0


@given(st.text(alphabet="abc ", max_size=6), st.text(alphabet="abcd ", max_size=14))
def test_what_is_found_is_exactly_what_has_the_letters_in_their_order(typed, name):
    letters = iter(name)
    there = all(letter in letters for letter in typed.replace(" ", ""))
    assert (fuzzy_score(typed, name) is not None) is there
