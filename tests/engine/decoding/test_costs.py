"""The cost curve: straight lines between measured widths, measured once, kept, and measured again when the file is no good."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import pytest

from engine.decoding.costs import CostCurve, PassCosts, cached_costs, measure_costs
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetOutput, TargetShape
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.tiny import VOCAB, build_target, target_config

CURVE = CostCurve((1, 2, 4, 8), (1.0, 2.0, 3.0, 5.0), (0.0, 0.5, 0.7, 1.1))


def test_between_measured_widths_the_cost_is_linear() -> None:
    assert [CURVE.verify(width) for width in (1, 2, 3, 4, 6, 8)] == [1.0, 2.0, 2.5, 3.0, 4.0, 5.0]
    assert CURVE.cycle(6) == pytest.approx(4.0 + 0.9)


def test_beyond_the_widest_the_cost_is_not_extrapolated() -> None:
    assert CURVE.verify(20) == 5.0 and CURVE.widest == 8


@pytest.mark.parametrize("block", [2, 5, 6, 16])
def test_every_width_up_to_the_block_is_measured_and_the_target_is_left_usable(block: int) -> None:
    target = AttentionTarget(build_target(target_config("llama")), "llama", TargetShape(32, VOCAB, 4, 2048))
    curve = measure_costs(target, OracleDrafter([1] * 40, 0, lambda _cycle: 0, block, taps=(1,)))
    assert curve.widths[0] == 1 and block in curve.widths and curve.widest == 64 and len(set(curve.widths)) == len(curve.widths)
    assert all(seconds > 0 for seconds in curve.verify_s) and curve.draft_s[0] < curve.verify_s[0]


class SlowTarget:
    """A pass takes ``step`` seconds and ``row`` more for each slot by its own ``clock``, which is asked before and after it."""

    def __init__(self, step: float, row: float, held_up: int = 0):
        self.step, self.row, self.held_up, self.seconds, self.widths = step, row, held_up, 0.0, set[int]()
        self.before, self.shape = False, SimpleNamespace(vocab_size=1000)
        self.different: dict[int, int] = {}

    def clock(self) -> float:
        self.before = not self.before
        if not self.before:
            self.seconds += self.last
        return self.seconds

    def make_cache(self) -> list:
        return []

    def cache_arrays(self, cache: list) -> list:
        return []

    def forward(self, ids: mx.array, cache: list, taps: tuple[int, ...] = ()) -> TargetOutput:
        self.last = self.step + self.row * ids.shape[0] + 5.0 * (ids.shape[0] == self.held_up)
        self.widths.add(ids.shape[0])
        self.different[ids.shape[0]] = len(set(ids.tolist()))
        return TargetOutput(mx.zeros((1, 2)), None)

    def rollback(self, cache: list, rejected: int) -> None:
        pass


@pytest.mark.parametrize(("step", "row", "widest"), [(1.0, 0.02, 64), (0.0, 1.0, 16)])
def test_wide_passes_are_measured_only_where_they_could_pay(step: float, row: float, widest: int) -> None:
    """Without a fast BLAS each slot costs a whole step: loading must not take half a minute to find that out again and again."""
    target = SlowTarget(step, row)
    curve = measure_costs(target, None, target.clock)  # type: ignore[arg-type]
    assert curve.widest == max(target.widths - {128}) == widest
    assert curve.verify_s == pytest.approx([step + row * width for width in curve.widths]) and set(curve.draft_s) == {0.0}


def test_passes_are_measured_over_many_different_tokens() -> None:
    """A mixture of experts reads few of its weights for one token repeated: wide blocks would look cheaper than a text's are."""
    target = SlowTarget(1.0, 0.02)
    measure_costs(target, None, target.clock)  # type: ignore[arg-type]
    assert all(different > 0.8 * width for width, different in target.different.items())


def test_a_pass_that_was_held_up_does_not_count_as_longer_than_a_wider_one() -> None:
    target = SlowTarget(1.0, 0.02, held_up=8)
    curve = measure_costs(target, None, target.clock)  # type: ignore[arg-type]
    assert curve.verify(8) == curve.verify(12) == pytest.approx(1.0 + 0.02 * 12)
    assert curve.verify(6) == pytest.approx(1.0 + 0.02 * 6)


def test_costs_are_measured_once_for_one_machine_and_pair(tmp_path: Path) -> None:
    calls: list[int] = []

    def measure() -> CostCurve:
        calls.append(1)
        return CURVE

    assert [cached_costs(tmp_path, ["a", "b"], measure) for _ in range(3)] == [CURVE] * 3
    assert len(calls) == 1
    cached_costs(tmp_path, ["a", "c"], measure)
    assert len(calls) == 2


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"widths": 3}', '{"odd": []}'])
def test_a_file_that_is_no_good_is_measured_again(tmp_path: Path, content: str) -> None:
    cached_costs(tmp_path, ["x"], lambda: CostCurve((1,), (9.0,), (0.0,)))
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    assert cached_costs(tmp_path, ["x"], lambda: CURVE) == CURVE
    assert cached_costs(tmp_path, ["x"], lambda: CostCurve((1,), (9.0,), (0.0,))) == CURVE


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert cached_costs(tmp_path / "file" / "costs", ["x"], lambda: CURVE) == CURVE


def test_an_answers_pass_times_are_carried_over_by_the_curve() -> None:
    """Twice as slow as the curve where it was timed, so twice as slow at the widths that were not."""
    costs = PassCosts(CURVE)
    costs.add(8, 2.2, 10.0)
    costs.add(4, None, None)
    costs.add(2, None, None)
    draft_s, verify_s = costs.totals()
    assert draft_s == pytest.approx(2 * (1.1 + 0.7 + 0.5)) and verify_s == pytest.approx(2 * (5.0 + 3.0 + 2.0))


def test_without_a_curve_every_cycle_is_the_average_timed_one() -> None:
    costs = PassCosts(None)
    for times in ((1.0, 3.0), (None, None), (2.0, 5.0), (None, None)):
        costs.add(8, *times)
    assert costs.totals() == (pytest.approx(6.0), pytest.approx(16.0))


def test_looked_up_blocks_cost_a_verify_pass_and_no_draft() -> None:
    costs = PassCosts(CURVE)
    costs.add(8, None, 10.0, drafted=False)
    costs.add(8, None, None, drafted=False)
    assert costs.totals() == (0.0, pytest.approx(20.0))


def test_untimed_drafts_beside_timed_lookups_are_as_much_slower_as_those() -> None:
    costs = PassCosts(CURVE)
    costs.add(8, None, 10.0, drafted=False)
    costs.add(4, None, None)
    assert costs.totals() == (pytest.approx(2 * 0.7), pytest.approx(2 * (5.0 + 3.0)))


def test_an_answer_without_a_timed_cycle_has_no_pass_times() -> None:
    costs = PassCosts(CURVE)
    costs.add(4, None, None)
    assert costs.totals() == (0.0, 0.0)


@pytest.mark.parametrize(
    "damage",
    [
        {"widths": [], "verify_s": [], "draft_s": []},
        {"widths": [1, 2], "verify_s": [0.0, 0.0], "draft_s": [0.0, 0.0]},
        {"widths": [1, 2], "verify_s": [0.1], "draft_s": [0.1]},
        {"widths": [2, 1], "verify_s": [0.1, 0.2], "draft_s": [0.1, 0.2]},
    ],
)
def test_kept_costs_that_make_no_sense_are_measured_again(tmp_path: Path, damage: dict[str, list[float]]) -> None:
    curve = CostCurve((1, 2), (0.1, 0.2), (0.0, 0.1))
    assert cached_costs(tmp_path, ["here"], lambda: curve) == curve
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps(damage))
    assert cached_costs(tmp_path, ["here"], lambda: curve) == curve
