"""Are two answers the same? The identity verdict shown side by side and in reports. No MLX here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """``compared`` tokens were compared; ``first_difference`` is the index of the first that differs, None when identical.

    When one answer merely stopped earlier (cancelled), the shorter is compared with the same length of the longer and
    ``complete`` is False.
    """

    identical: bool
    compared: int
    first_difference: int | None
    complete: bool


def compare_tokens(baseline: Sequence[int], other: Sequence[int], complete: bool = True) -> Verdict:
    """Compares two answers token for token. ``complete`` False: one was cut off, so only the common length counts."""
    compared = min(len(baseline), len(other))
    for index in range(compared):
        if baseline[index] != other[index]:
            return Verdict(False, compared, index, complete)
    if complete and len(baseline) != len(other):
        return Verdict(False, compared, compared, complete)
    return Verdict(True, compared, None, complete)
