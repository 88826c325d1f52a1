"""The acceptance rule against its definition in plain Python."""

from __future__ import annotations

import mlx.core as mx
from hypothesis import given
from hypothesis import strategies as st

from engine.decoding.acceptance import accepted_prefix


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=16), st.integers(0, 3))
def test_accepted_is_the_length_of_the_common_prefix(pairs: list[tuple[int, int]], last: int) -> None:
    proposals, choices = [p for p, _ in pairs], [c for _, c in pairs] + [last]
    expected = 0
    while expected < len(proposals) and proposals[expected] == choices[expected]:
        expected += 1
    result = accepted_prefix(mx.array(proposals, dtype=mx.int32), mx.array(choices, dtype=mx.int32))
    assert result.shape == () and result.item() == expected


@given(st.lists(st.integers(0, 2), min_size=1, max_size=16))
def test_a_match_after_the_first_miss_does_not_count(choices: list[int]) -> None:
    wrong_first = [choices[0] + 1, *choices[1:]]
    assert accepted_prefix(mx.array(wrong_first), mx.array([*choices, 0])).item() == 0
