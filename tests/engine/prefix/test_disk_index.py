"""The index alone: whatever the tree, what is given up first is of least worth, and no segment goes before what needs it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.prefix.disk_format import Record
from engine.prefix.disk_index import Entry, Index, pack_records, unpack_records
from tests.engine.prefix.disk_segments import CONTENT

# Each entry names the one before it (-1: the beginning, -2: one that is lost, -3: an unusable file) and when it was used.
TREES = st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 20)), max_size=10)


def build(tree: list[tuple[int, int]]) -> Index:
    """An index of ``tree``; an entry may only come after an earlier one."""
    index = Index()
    for number, (before, used) in enumerate(tree):
        before = min(before, number - 1) if before >= 0 else before
        parent = CONTENT if before == -1 else name(before)
        record = Record(name(number), parent, 0 if before == -1 else 5, number.to_bytes(4, "little"), False)
        index.add(name(number), Entry(None if before == -3 else record, 10, used))
    return index


def name(number: int) -> str:
    """A key."""
    return f"{number + 100:064x}"


def reaches_the_beginning(index: Index, key: str) -> bool:
    """Whether all segments before ``key`` are there."""
    while (entry := index.entries.get(key)) is not None and entry.record is not None:
        if entry.record.start == 0:
            return True
        key = entry.record.parent
    return False


@given(TREES)
def test_every_entry_is_given_up_once_children_first_useless_ones_first_then_by_last_use(tree):
    index = build(tree)
    order = list(index.victims())
    assert sorted(order) == sorted(index.entries)
    place = {key: number for number, key in enumerate(order)}
    parents = {key: entry.record.parent for key, entry in index.entries.items() if entry.record}
    assert all(place[key] < place[parent] for key, parent in parents.items() if parent in place)
    for number, key in enumerate(order):
        rest = set(order[number:])
        leaves = rest - {parents.get(other) for other in rest}
        worth = {leaf: (reaches_the_beginning(index, leaf), index.entries[leaf].used) for leaf in leaves}
        assert worth[key] == min(worth.values())


@given(TREES, st.lists(st.integers(0, 9)))
def test_bytes_and_branches_stay_right_whatever_is_added_and_removed(tree, removed):
    index = build(tree)
    for number in removed:
        index.remove(name(number))
    assert index.total == 10 * len(index.entries)
    roots = {key for key, entry in index.entries.items() if entry.record and entry.record.parent == CONTENT}
    found = {index.match(CONTENT, [int(key, 16) - 100], False)[0].key for key in roots}
    assert found == roots
    assert unpack_records(pack_records(index.records())) == {record.key: record for record in index.records()}
