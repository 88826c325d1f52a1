"""What a draft and a verify pass cost on this machine, by width: measured at first use, kept on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import mlx.core as mx

from engine.decoding.curve import CostCurve
from engine.drafters.protocol import Drafter
from engine.measured import measured_once
from engine.targets.protocol import Target

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
WIDE = 16  # beyond it only looked-up blocks are so wide: a pass costs much and is measured less often ...
WORTH = 0.5  # ... and not at all where a pass of WIDE slots takes more than this share of as many single steps
CONTEXT_ROWS = 128  # a usual prompt; longer ones are corrected by what the loop observes
REPEATS = 4
WIDE_REPEATS = 2
FORMAT = 3  # of what is kept, and of how it is measured


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

    def add(self, width: int, draft_s: float | None, verify_s: float | None, drafted: bool = True) -> None:
        """One cycle of ``width`` slots; its times where it was timed. ``drafted`` False: there was no draft pass."""
        draft, verify = (self._curve.draft(width), self._curve.verify(width)) if self._curve else (float(width > 1), 1.0)
        expected = (draft if drafted else 0.0, verify)
        for index, (seconds, share) in enumerate(zip((draft_s, verify_s), expected, strict=True)):
            self._expected[index] += share
            if verify_s is not None:
                self._timed[index] += seconds or 0.0
                self._timed_expected[index] += share

    def totals(self) -> tuple[float, float]:
        """Estimated draft and verify seconds; 0 where no cycle was timed."""
        slower = [timed / share if share else 0.0 for timed, share in zip(self._timed, self._timed_expected, strict=True)]
        if not self._timed_expected[0]:  # only looked-up blocks were timed
            slower[0] = slower[1]
        return self._expected[0] * slower[0], self._expected[1] * slower[1]


def measure_costs(target: Target, drafter: Drafter | None, clock: Callable[[], float] = time.perf_counter) -> CostCurve:
    """Times every width in an order that spreads a passing disturbance over all of them; ``drafter`` None: verify passes only.

    Widths beyond ``WIDE`` and the draft's block are left out where they could not pay.
    """
    block = drafter.block_length if drafter else 1
    widths = tuple(sorted({*WIDTHS, block}))
    cache, session = target.make_cache(), drafter.session() if drafter else None
    taps = drafter.taps if drafter else ()
    # As various as a text is: one token over and over would wake the same few experts of a mixture, and wide passes look cheap.
    prompt = mx.random.randint(0, target.shape.vocab_size, (CONTEXT_ROWS,), key=mx.random.key(0))
    output = target.forward(prompt, cache, taps)
    mx.eval(target.cache_arrays(cache), session.prefill(output.taps, 0) if session else [])
    verify: dict[int, list[float]] = {width: [] for width in widths}
    draft: dict[int, list[float]] = {width: [] for width in widths if width <= block}
    for repeat in range(REPEATS + 1):
        for width in widths:
            if width > max(WIDE, block) and (repeat > WIDE_REPEATS or min(verify[WIDE]) > WORTH * WIDE * min(verify[1])):
                continue
            verify[width].append(_timed(mx.argmax(target.forward(prompt[:width], cache, taps).logits, axis=-1), clock))
            target.rollback(cache, width)
            if session is not None and width <= block:
                draft[width].append(_timed(session.propose(prompt[:1], None, CONTEXT_ROWS, width - 1, [0, 0, 0]), clock))
    # The shortest of each but the first, which warms up: whatever else the machine does can only add, and the curve is kept.
    draft_s = {width: min(times[1:], default=0.0) for width, times in draft.items()}
    measured = tuple(width for width in widths if len(verify[width]) > 1)
    verify_s = [min(verify[width][1:]) for width in measured]
    return CostCurve(measured, _rising(verify_s), _rising([draft_s[min(width, block)] for width in measured]))


def _rising(seconds: Sequence[float]) -> tuple[float, ...]:
    """No pass counts as longer than a wider one: that was a disturbance, or a width that the next one makes pointless."""
    return tuple(min(seconds[index:]) for index in range(len(seconds)))


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
