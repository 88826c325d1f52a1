"""Lookup drafting proposes what followed the same tokens before, and nothing else."""

from __future__ import annotations

import mlx.core as mx
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.lookup import NGRAM, LookupDrafter, LookupSession


def propose(session: LookupSession, committed: list[int], length: int = 8) -> list[int] | None:
    found = session.propose(mx.array(committed[-1:], dtype=mx.int32), None, len(committed) - 1, length, committed)
    return None if found is None else found.tolist()


def defined(committed: list[int], length: int) -> list[int] | None:
    """The definition: the latest earlier place of the last three tokens, found by looking everywhere."""
    tail = committed[-NGRAM:]
    for end in range(len(committed) - 1, NGRAM - 1, -1):
        if committed[end - NGRAM : end] == tail:
            return committed[end : end + length] or None
    return None


def test_what_followed_the_same_tokens_is_proposed_again() -> None:
    assert propose(LookupSession(), [1, 2, 3, 4, 5, 6, 1, 2, 3]) == [4, 5, 6, 1, 2, 3]
    assert propose(LookupSession(), [1, 2, 3, 4, 5, 6, 1, 2, 3], length=2) == [4, 5]


def test_the_latest_earlier_place_wins() -> None:
    assert propose(LookupSession(), [1, 2, 3, 7, 0, 1, 2, 3, 8, 9, 1, 2, 3], length=2) == [8, 9]


def test_the_newest_tokens_do_not_find_themselves() -> None:
    assert propose(LookupSession(), [5, 1, 2, 3]) is None


def test_short_and_new_texts_propose_nothing() -> None:
    for committed in ([1], [1, 1], [1, 2, 3], [1, 2, 3, 4, 5]):
        assert propose(LookupSession(), committed) is None


def test_no_room_means_no_proposal() -> None:
    assert propose(LookupSession(), [1, 2, 3, 4, 1, 2, 3], length=0) is None


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=12),
    st.integers(0, 9),
)
def test_an_index_grown_cycle_by_cycle_finds_what_a_search_of_everything_finds(prompt, cycles, length) -> None:
    session, committed = LookupSession(), list(prompt)
    for tokens in [[], *cycles]:
        committed += tokens
        assert propose(session, committed, length) == defined(committed, length)


def test_proposals_have_the_anchors_kind_of_number() -> None:
    anchor = mx.array([3], dtype=mx.int32)
    found = LookupSession().propose(anchor, None, 6, 4, [1, 2, 3, 4, 1, 2, 3])
    assert found is not None and found.dtype == anchor.dtype


def test_each_request_starts_with_an_empty_index() -> None:
    drafter = LookupDrafter()
    assert propose(drafter.session(), [1, 2, 3, 4, 1, 2, 3]) == [4, 1, 2, 3]
    assert propose(drafter.session(), [9, 1, 2, 3]) is None
    assert drafter.session().prefill(None, 0) == []
