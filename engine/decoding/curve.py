"""What passes cost by width, in plain data: for the controller and for whoever shows it. No MLX here."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a verify pass and of a draft pass over each of ``widths`` slots; between them linear.

    Beyond the draft's own block ``draft_s`` stays as it is there.
    """

    widths: tuple[int, ...]
    verify_s: tuple[float, ...]
    draft_s: tuple[float, ...]

    def __post_init__(self) -> None:
        ascending = self.widths[:1] == (1,) and all(low < high for low, high in pairwise(self.widths))
        whole = len(self.widths) == len(self.verify_s) == len(self.draft_s)
        if not ascending or not whole or min(self.verify_s) <= 0 or min(self.draft_s) < 0:
            raise ValueError(f"these are no costs by width: {self.widths}, {self.verify_s}, {self.draft_s}")

    @property
    def widest(self) -> int:
        return self.widths[-1]

    def verify(self, width: int) -> float:
        return self._between(self.verify_s, width)

    def draft(self, width: int) -> float:
        return self._between(self.draft_s, width)

    def cycle(self, width: int) -> float:
        """A whole cycle of ``width`` slots."""
        return self.verify(width) + self.draft(width)

    def _between(self, seconds: Sequence[float], width: int) -> float:
        right = min(bisect.bisect_left(self.widths, width), len(self.widths) - 1)
        if self.widths[right] <= width or right == 0:
            return seconds[right]
        low, high = self.widths[right - 1], self.widths[right]
        share = (width - low) / (high - low)
        return seconds[right - 1] + share * (seconds[right] - seconds[right - 1])
