"""The reason beside an identity verdict: bit-equal widths, near-ties and their margins, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine import PairInfo, compare_tokens, identity_reason

PAIR = PairInfo("x", "X", "llama", "CPU", "float32", 2048, "draft", 4, None, 1, exact_widths=(2, 3))
SAME, OTHER = compare_tokens([1, 2, 3], [1, 2, 3]), compare_tokens([1, 2, 3], [1, 2, 4])


@pytest.mark.parametrize(
    ("widths", "reason"),
    [
        ((2, 3, 4), "bit-equal at every block length"),
        ((2, 3), "bit-equal at widths 2, 3, and no choice was near enough to a tie for rounding to change it"),
        ((), "no choice was near enough to a tie for rounding to change it"),
        (None, "no choice was near enough to a tie for rounding to change it"),
    ],
)
def test_identical_texts_say_at_which_widths_they_had_to_be(widths: tuple[int, ...] | None, reason: str) -> None:
    assert identity_reason(SAME, replace(PAIR, exact_widths=widths), None) == reason


@pytest.mark.parametrize(
    ("dtype", "margin", "reason"),
    [
        ("float32", 0.0003, "near-tie: margin 0.0003 at token 2"),
        ("float32", 0.2, "not a near-tie: margin 0.2 at token 2. Please report this."),
        ("bfloat16", 0.2, "near-tie: margin 0.2 at token 2"),
        ("4-bit", 1.5, "not a near-tie: margin 1.5 at token 2. Please report this."),
    ],
)
def test_a_difference_is_a_near_tie_or_a_fault_by_the_models_own_rounding(dtype: str, margin: float, reason: str) -> None:
    assert identity_reason(OTHER, replace(PAIR, dtype=dtype), margin) == reason


def test_a_difference_without_a_margin_says_where_and_how_to_measure_it() -> None:
    reason = identity_reason(OTHER, PAIR, None)
    assert "token 2" in reason and "slipstream bench" in reason
