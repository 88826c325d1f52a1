"""How figures are kept and worded, the same everywhere: the line under an answer, the meter, the comparison, exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine import Finished


def answer_statistics(finished: Finished) -> dict[str, Any]:
    """The plain dict kept with an answer: every field and rate of ``Finished.statistics``, and ``finish_reason``."""
    raise NotImplementedError


def statistics_line(statistics: Mapping[str, Any] | None) -> str:
    """The line under an answer, like "41 tok/s · 3.2 tokens/cycle · 71 % accepted · first 0.3 s"; "" for None."""
    raise NotImplementedError
