"""Are two answers the same? The identity verdict shown side by side and in reports. No MLX here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.info import PairInfo

NEAR_TIE = 0.01  # logits; fp32 passes of different widths round apart by less
NEAR_TIE_16 = 0.5  # the same of bf16, fp16 and quantised weights; measured differences reach 0.25


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


def identity_reason(verdict: Verdict, pair: PairInfo, margin: float | None) -> str:
    """Why two answers of ``pair`` agree or differ, in words.

    ``margin``: by how many logits plain decoding preferred its own token at the first difference; None: not measured.
    """
    if verdict.identical:
        widths = pair.exact_widths or ()
        if pair.block_length and set(widths) >= set(range(2, pair.block_length + 1)):
            return "bit-equal at every block length"
        some = f"bit-equal at widths {', '.join(map(str, widths))}, and " if widths else ""
        return f"{some}no choice was near enough to a tie for rounding to change it"
    if margin is None:
        return f"rounding or a fault at token {verdict.first_difference}: `slipstream bench` measures how near a tie it was"
    place = f"margin {margin:.2g} at token {verdict.first_difference}"
    return f"near-tie: {place}" if is_near_tie(margin, pair) else f"not a near-tie: {place}. Please report this."


def is_near_tie(margin: float, pair: PairInfo) -> bool:
    """Whether passes of different widths may round to different choices where the first leads by ``margin`` logits."""
    return margin <= (NEAR_TIE if pair.dtype == "float32" else NEAR_TIE_16)
