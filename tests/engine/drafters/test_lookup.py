"""Lookup proposes what followed the longest passage that stood there before, and knows how long the match is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.lookup import FAITH, LONGEST, PLACES, LookupDrafter, LookupIndex
from engine.drafters.protocol import Foreseen

TEXTS = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def index_of(tokens: list[int]) -> LookupIndex:
    index = LookupIndex()
    index.extend(tokens)
    return index


def matched(index: LookupIndex) -> int | None:
    """How many of the newest tokens stood before; None where nothing is foreseen."""
    return index.ahead[0].matched if index.ahead else None


def longest_match(tokens: list[int]) -> tuple[int, int] | None:
    """The definition: place behind the best earlier occurrence and how much of it matches, found by looking everywhere."""
    end, best = len(tokens), None
    for place in range(end - 1, 0, -1):
        length = next((n for n in range(min(place, LONGEST)) if tokens[place - 1 - n] != tokens[end - 1 - n]), min(place, LONGEST))
        if length and (best is None or length > best[1]):
            best = place, length
    return best


def followed(tokens: list[int]) -> tuple[int, int] | None:
    """Place and length by definition after ``tokens``: what is right is followed, anything else is searched for."""
    place = None
    for end in range(1, len(tokens) + 1):
        if place is not None and tokens[place[0]] == tokens[end - 1]:
            place = place[0] + 1, min(place[1] + 1, LONGEST)
            continue
        broken, place = place, longest_match(tokens[:end])
        if (place is None or place[1] == 1) and broken is not None and broken[1] >= FAITH:
            place = broken[0] + 1, 0
    return place


@given(TEXTS, st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=12), st.integers(0, 9))
def test_an_index_grown_cycle_by_cycle_finds_what_a_search_of_everything_finds(prompt, cycles, length) -> None:
    index, committed = LookupIndex(), []
    for tokens in [prompt, *cycles]:
        index.extend(tokens)
        committed += tokens
        found = followed(committed)
        assert matched(index) == (None if found is None else found[1])
        if found is not None:
            assert index.propose(length) == going_on(committed, found[0], length)


def going_on(tokens: list[int], place: int, length: int) -> list[int]:
    """The tokens from ``place`` on, where a copied token can be copied again."""
    grown = list(tokens)
    for offset in range(length):
        grown.append(grown[place + offset])
    return grown[len(tokens) :]


@given(TEXTS)
def test_each_foreseen_token_is_reported_with_its_match_and_whether_it_came(tokens: list[int]) -> None:
    """Doubtful is what came differently before behind the same two tokens, -1 standing for one before the first."""
    index, expected, wrong, padded = LookupIndex(), [], set(), [-1, *tokens]
    for end, token in enumerate(tokens):
        found = followed(tokens[:end])
        if found is not None:
            before, right = tuple(padded[end - 1 : end + 1]), tokens[found[0]] == token
            expected.append((Foreseen(found[1], before in wrong), right))
            if not right:
                wrong.add(before)
    assert index.extend(tokens) == expected


@given(TEXTS, st.integers(1, 20))
def test_what_is_ahead_tells_of_each_token_what_will_be_reported_when_it_comes_so(tokens: list[int], length: int) -> None:
    index = index_of(tokens)
    ahead = index.ahead[:length]
    assert index.extend(index.propose(length) if ahead else []) == [(foreseen, True) for foreseen in ahead]


def test_a_place_that_went_on_differently_once_is_doubtful_from_then_on() -> None:
    index = index_of([1, 2, 3, 9, 1, 2])
    assert index.ahead[0] == Foreseen(2) and index.propose(1) == [3]
    index.extend([4, 9, 1, 2])
    assert index.ahead[:2] == [Foreseen(3, doubtful=True), Foreseen(4)] and index.propose(2) == [4, 9]


def test_nothing_is_proposed_behind_a_token_that_ends_the_answer() -> None:
    index = LookupIndex(ends={7})
    index.extend([1, 2, 3, 7, 4, 5, 1, 2])
    assert index.propose(5) == [3, 7] and len(index.ahead) == 2


def test_the_longest_match_wins_over_a_later_shorter_one() -> None:
    assert index_of([1, 2, 3, 4, 7, 9, 3, 4, 8, 0, 1, 2, 3, 4]).propose(1) == [7]


def test_the_latest_of_equally_long_matches_wins() -> None:
    assert index_of([1, 2, 3, 7, 0, 1, 2, 3, 8, 9, 0, 1, 2, 3]).propose(2) == [8, 9]
    assert index_of([3, 7, 3, 8, 3]).propose(1) == [8]


def test_short_and_new_texts_match_nothing() -> None:
    for tokens in ([], [1], [1, 2, 3], [1, 2, 3, 4, 5]):
        assert index_of(tokens).ahead == []


def test_a_passage_that_repeats_goes_round_without_end() -> None:
    assert index_of([5, 1, 2, 3, 1, 2, 3]).propose(8) == [1, 2, 3, 1, 2, 3, 1, 2]


def test_behind_one_changed_token_a_long_passage_is_followed_on() -> None:
    passage = list(range(10, 30))
    index = index_of([*passage, 99, *passage[:12], 77])
    assert matched(index) == 0 and index.propose(3) == passage[13:16]
    assert index.extend(passage[13:15]) == [(Foreseen(0), True), (Foreseen(1), True)] and matched(index) == 2


def test_behind_a_second_changed_token_it_is_given_up() -> None:
    passage = list(range(10, 30))
    index = index_of([*passage, 99, *passage[:12], 77])
    assert index.extend([78]) == [(Foreseen(0), False)] and index.ahead == []
    assert index.extend([77]) == [] and matched(index) == 1


def test_no_more_than_the_latest_places_are_looked_at() -> None:
    """What bounds the work for a token: a pair of tokens that is everywhere must not slow the answer down."""
    tokens = [2, 3, 4, 50, 2, 3, 8] + [token for number in range(PLACES) for token in (100 + number, 3, 4)]
    assert matched(index_of([*tokens, 2, 3, 4])) == 2
    assert matched(index_of([*tokens[:-3], 2, 3, 4])) == 3


def test_lookup_needs_no_model_of_its_own() -> None:
    drafter = LookupDrafter()
    assert drafter.session() is None and drafter.taps == ()
