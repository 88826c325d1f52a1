"""A chat's tree: branches, versions and what follows a message, whatever the order or damage of what was kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.chat import ChatMessage
from app.core.tree import ChatTree


def message(message_id: int, parent_id: int | None = None) -> ChatMessage:
    return ChatMessage(message_id, 1, "user", f"text {message_id}", "sent", 0.0, None, parent_id)


def tree(*links: tuple[int, int | None]) -> ChatTree:
    return ChatTree(message(*link) for link in links)


def ids(messages: list[ChatMessage]) -> list[int]:
    return [each.id for each in messages]


# 1 - 2 - 3 - 4      2 and 5 are versions, 6 is the later of 5's followers, 8 another beginning
#   \ 5 - 6   \ 7
FULL = ((1, None), (2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 2), (8, None))


def test_a_branch_is_read_from_its_beginning_to_its_end():
    full = tree(*FULL)
    assert ids(full.path(4)) == [1, 2, 3, 4] and ids(full.path(6)) == [1, 5, 6] and ids(full.path(2)) == [1, 2]


def test_without_a_known_end_the_newest_branch_is_shown():
    assert ids(tree(*FULL[:-1]).path(None)) == ids(tree(*FULL[:-1]).path(99)) == [1, 2, 7]
    assert ChatTree().path(None) == []


def test_whether_a_branch_has_versions_is_what_its_messages_say():
    full = tree(*FULL)
    for leaf in (4, 6, 7, 8):
        assert full.has_versions(full.path(leaf))
    for gone in (8, 7):
        full.remove(gone)
    assert full.has_versions(full.path(4)) and not full.has_versions(full.path(1))
    full.remove(5)
    assert not full.has_versions(full.path(4)) and not ChatTree().has_versions([])


def test_versions_are_the_messages_after_the_same_one():
    full = tree(*FULL)
    assert full.versions(5) == [2, 5] and full.versions(3) == [3, 7] and full.versions(8) == [1, 8] and full.versions(6) == [6]


def test_another_version_is_shown_with_what_was_written_last_below_it():
    full = tree(*FULL)
    assert full.leaf_beside(5, -1) == 7 and full.leaf_beside(2, 1) == 6 and full.leaf_beside(1, 1) == 8
    assert full.leaf_beside(2, -1) is None and full.leaf_beside(5, 1) is None


def test_removing_a_message_takes_all_that_follows_and_nothing_else():
    full = tree(*FULL)
    assert sorted(full.following(2)) == [2, 3, 4, 7]
    full.remove(2)
    assert [each for each in range(1, 9) if each in full] == [1, 5, 6, 8]
    assert full.versions(5) == [5] and ids(full.path(7)) == [8]


def test_a_replaced_message_keeps_its_place_and_an_unknown_one_is_left_out():
    full = tree(*FULL)
    full.replace(ChatMessage(5, 1, "user", "other", "done", 0.0, None, 1))
    full.replace(message(77))
    assert full[5].content == "other" and full.versions(2) == [2, 5] and 77 not in full


@given(st.lists(st.tuples(st.integers(1, 12), st.none() | st.integers(1, 14)), unique_by=lambda link: link[0], max_size=12))
def test_whatever_a_damaged_file_says_every_message_is_on_one_finite_branch(links):
    links = sorted(links)
    damaged = tree(*links)
    for message_id, _parent in links:
        path = ids(damaged.path(message_id))
        assert path[-1] == message_id and path == sorted(set(path))
        assert message_id in damaged.versions(message_id) and damaged.newest_leaf(message_id) >= message_id
