"""Stop strings end the answer at the same character however the text arrives."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from engine.text.stop import StopStrings

STOPS = st.lists(st.text("abc", max_size=4), max_size=3).map(tuple)
PIECES = st.lists(st.text("abc", max_size=5), max_size=10)


def run(stops: tuple[str, ...], pieces: list[str]) -> tuple[str, str | None, list[str]]:
    """All text shown, the match, and what was shown after each piece."""
    rule, shown = StopStrings(stops), []
    for piece in pieces:
        shown.append(rule.push(piece))
    return "".join(shown) + rule.flush(), rule.matched, shown


def defined(stops: tuple[str, ...], text: str) -> tuple[str, str | None]:
    """The definition: at the first character that completes any stop string, cut before the longest one it completes."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if complete:
            longest = max(complete, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(STOPS, PIECES)
@example(("abca", "bc"), ["abca"])  # "bc" is complete first although "abca" begins earlier
@example(("bc", "abc"), ["ab", "c"])  # both complete at once: the longer one
@example(("aab",), ["aaa", "ab"])
def test_text_ends_at_the_match_that_is_complete_first_in_any_pieces(stops: tuple[str, ...], pieces: list[str]) -> None:
    text, matched, _ = run(stops, pieces)
    assert (text, matched) == defined(stops, "".join(pieces))


@given(STOPS, PIECES)
def test_nothing_is_shown_that_could_still_belong_to_a_stop_string_and_nothing_else_is_held(
    stops: tuple[str, ...], pieces: list[str]
) -> None:
    _, _, shown = run(stops, pieces)
    for count in range(1, len(pieces) + 1):
        text, matched = defined(stops, "".join(pieces[:count]))
        if matched is None:
            could_begin = (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
            assert "".join(shown[:count]) == text[: len(text) - max(could_begin, default=0)]


def test_without_stop_strings_every_piece_passes_at_once() -> None:
    assert run((), ["a", "", "b"]) == ("ab", None, ["a", "", "b"])
    assert run(("",), ["a", "b"]) == ("ab", None, ["a", "b"])


def test_after_a_match_nothing_comes_out() -> None:
    rule = StopStrings(("END",))
    assert rule.push("so far ENDmore") == "so far "
    assert (rule.push("still more"), rule.flush(), rule.matched) == ("", "", "END")


def test_a_beginning_that_never_completes_is_given_back_at_the_end() -> None:
    rule = StopStrings(("</answer>",))
    assert rule.push("x </ans") == "x "
    assert (rule.flush(), rule.matched) == ("</ans", None)


def test_stop_strings_may_hold_any_characters() -> None:
    assert run(("👨‍👩", "\n\n"), ["a\n", "👨", "‍👩b"])[:2] == ("a\n", "👨‍👩")
