"""What a draft and a verify pass cost on this machine, by width: measured at first use, kept on disk."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import mlx.core as mx

from engine.drafters.protocol import Drafter
from engine.measured import measured_once
from engine.targets.protocol import Target

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
CONTEXT_ROWS = 128  # a usual prompt; longer ones are corrected by what the loop observes
REPEATS = 4
FORMAT = 1


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a verify pass and of a draft pass over each of ``widths`` slots; between them linear."""

    widths: tuple[int, ...]
    verify_s: tuple[float, ...]
    draft_s: tuple[float, ...]

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


class PassCosts:
    """The draft and verify seconds of one answer, from the few cycles that were timed part by part.

    Cycles differ in width, so each timed one tells how far this answer's passes are from the machine's cost curve, and the curve
    carries that over to the widths of the others. Without a curve all cycles count as the average timed one.
    """

    def __init__(self, curve: CostCurve | None):
        self._curve = curve
        self._expected = [0.0, 0.0]  # draft and verify seconds of all cycles by the curve
        self._timed_expected = [0.0, 0.0]
        self._timed = [0.0, 0.0]

    def add(self, width: int, draft_s: float | None, verify_s: float | None) -> None:
        """One cycle of ``width`` slots; its times where it was timed."""
        expected = (self._curve.draft(width), self._curve.verify(width)) if self._curve else (float(width > 1), 1.0)
        for index, (seconds, share) in enumerate(zip((draft_s, verify_s), expected, strict=True)):
            self._expected[index] += share
            if verify_s is not None:
                self._timed[index] += seconds or 0.0
                self._timed_expected[index] += share

    def totals(self) -> tuple[float, float]:
        """Estimated draft and verify seconds; 0 where no cycle was timed."""
        draft_s, verify_s = (
            whole * timed / share if share else 0.0
            for whole, timed, share in zip(self._expected, self._timed, self._timed_expected, strict=True)
        )
        return draft_s, verify_s


def measure_costs(target: Target, drafter: Drafter, clock: Callable[[], float] = time.perf_counter) -> CostCurve:
    """Times every width up to the drafter's block, in an order that spreads a passing disturbance over all of them."""
    widths = (*(width for width in WIDTHS if width < drafter.block_length), drafter.block_length)
    cache, session = target.make_cache(), drafter.session()
    prompt = mx.zeros((CONTEXT_ROWS,), dtype=mx.int32)
    output = target.forward(prompt, cache, drafter.taps)
    mx.eval(target.cache_arrays(cache), session.prefill(output.taps, 0))
    times: dict[str, dict[int, list[float]]] = {"verify": {w: [] for w in widths}, "draft": {w: [] for w in widths}}
    for repeat in range(REPEATS + 1):
        for width in widths:
            verify_s = _timed(mx.argmax(target.forward(prompt[:width], cache, drafter.taps).logits, axis=-1), clock)
            target.rollback(cache, width)
            draft_s = _timed(session.propose(prompt[:1], None, CONTEXT_ROWS, width - 1, [0, 0, 0]), clock)
            if repeat:  # the first round warms up
                times["verify"][width].append(verify_s)
                times["draft"][width].append(draft_s)
    # The shortest of each: whatever else the machine does can only add, and the curve is kept for long.
    verify, draft = ([min(times[kind][width]) for width in widths] for kind in ("verify", "draft"))
    return CostCurve(widths, tuple(verify), tuple(draft))


def _timed(array: mx.array | None, clock: Callable[[], float]) -> float:
    start = clock()
    if array is not None:
        mx.eval(array)
    return clock() - start


def cached_costs(folder: Path, identity: Sequence[str], measure: Callable[[], CostCurve]) -> CostCurve:
    """The curve kept in ``folder`` for ``identity`` (machine, versions, pair), measured and kept when there is none."""
    return measured_once(
        folder,
        "costs",
        [str(FORMAT), *identity],
        lambda record: CostCurve(**{key: tuple(values) for key, values in record.items()}),
        lambda: asdict(measure()),
    )
