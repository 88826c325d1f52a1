"""The controller against scripted acceptance and costs: it finds the best length, parks when nothing pays, and comes back."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from engine.decoding.controller import FIRST_PAUSE, FIRST_SHARE, PROBE_SHARE, Choice, Controller, FixedLength
from engine.decoding.costs import CostCurve

WIDTHS = (1, 2, 4, 8)
CPU = CostCurve(WIDTHS, (0.043, 0.050, 0.060, 0.066), (0.0, 0.010, 0.011, 0.013))
CHEAP = CostCurve(WIDTHS, (0.040, 0.041, 0.042, 0.044), (0.0, 0.002, 0.002, 0.002))
HOST_BOUND = CostCurve(WIDTHS, (0.0037, 0.0075, 0.0104, 0.0104), (0.0, 0.0011, 0.0012, 0.0012))  # a cycle: three plain steps
HOPELESS = CostCurve(WIDTHS, (0.040, 0.080, 0.160, 0.320), (0.0, 0.05, 0.05, 0.05))


class Simulation:
    """Runs a controller on a machine with ``costs`` where each proposal is right with chance ``right(tokens so far)``."""

    def __init__(self, controller: Controller | FixedLength, costs: CostCurve, right: Callable[[int], float], seed: int = 0):
        self.controller, self.costs, self.right = controller, costs, right
        self.random = random.Random(seed)
        self.tokens, self.seconds = 0, 0.0
        self.lengths: list[int] = []

    def run(self, tokens: int) -> Simulation:
        while self.tokens < tokens:
            choice = self.controller.choose()
            self.lengths.append(choice.length)
            if choice.length == 1:
                spent = choice.steps * self.costs.verify(1)
                self.tokens += choice.steps
                self.controller.observe_plain(choice.steps, spent)
            else:
                accepted = 0
                while accepted < choice.length - 1 and self.random.random() < self.right(self.tokens):
                    accepted += 1
                spent = self.costs.cycle(choice.length)
                self.tokens += accepted + 1
                self.controller.observe(choice, choice.length - 1, accepted, spent)
            self.seconds += spent
        return self

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


def steady(p: float) -> Callable[[int], float]:
    return lambda _tokens: p


@pytest.mark.parametrize("costs", [CPU, CHEAP, HOPELESS])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_never_much_slower_than_plain_and_near_the_best_fixed_length(costs: CostCurve, p: float) -> None:
    """Over 400 tokens: never below 0.97 of plain decoding, and on average 0.95 of the best length that hindsight would choose."""
    plain, seeds = 1 / costs.verify(1), range(8)
    chosen = [Simulation(Controller(costs, 8), costs, steady(p), seed).run(400).rate for seed in seeds]
    fixed = [[Simulation(FixedLength(length), costs, steady(p), seed).run(400).rate for length in range(2, 9)] for seed in seeds]
    assert min(chosen) >= 0.97 * plain
    assert sum(chosen) >= 0.95 * sum(max(plain, *rates) for rates in fixed)


def test_parks_where_the_draft_is_wrong_and_says_why() -> None:
    controller = Controller(HOPELESS, 8)
    Simulation(controller, HOPELESS, steady(0.2)).run(100)
    assert controller.parked and controller.block_length == 0
    assert "Plain decoding is faster here" in controller.reason and "%" in controller.reason


def test_comes_back_when_the_text_becomes_easy() -> None:
    controller = Controller(CPU, 8)
    simulation = Simulation(controller, CPU, lambda tokens: 0.1 if tokens < 200 else 0.95)
    simulation.run(200)
    assert controller.parked
    simulation.run(400)
    assert not controller.parked and controller.block_length >= 4


def test_pauses_between_probes_grow_until_probing_costs_next_to_nothing() -> None:
    controller = Controller(CPU, 8)
    pauses, probes = [], []
    for _ in range(60):
        choice = controller.choose()
        if choice.parked:
            pauses.append(choice.steps)
            controller.observe_plain(choice.steps, choice.steps * CPU.verify(1))
        else:
            probes.append(choice.length)
            controller.observe(choice, choice.length - 1, 0, CPU.cycle(choice.length))
    assert pauses[0] == FIRST_PAUSE and sorted(pauses) == pauses and pauses[-1] > 2 * FIRST_PAUSE
    lost = CPU.cycle(probes[-1]) - CPU.verify(1)
    assert lost / (pauses[-1] * CPU.verify(1) + lost) == pytest.approx(PROBE_SHARE, rel=0.2)


def test_the_first_try_comes_later_where_a_try_costs_more() -> None:
    pauses = {}
    for name, costs in (("cpu", CPU), ("host bound", HOST_BOUND)):
        controller = Controller(costs, 8)
        while not (choice := controller.choose()).parked:
            controller.observe(choice, choice.length - 1, 0, costs.cycle(choice.length))
        pauses[name] = choice.steps
    controller.observe_plain(choice.steps, choice.steps * HOST_BOUND.verify(1))
    lost = HOST_BOUND.cycle(controller.choose().length) / HOST_BOUND.verify(1) - 1
    assert pauses["cpu"] == FIRST_PAUSE
    assert lost / (pauses["host bound"] + lost) == pytest.approx(FIRST_SHARE, rel=0.1)


def test_where_a_cycle_costs_several_steps_bad_luck_is_not_waited_out() -> None:
    """Answers of twenty tokens in which a draft that did well is always wrong: above nine tenths of plain decoding."""
    rates = []
    for seed in range(8):
        controller = Controller(HOST_BOUND, 8)
        Simulation(controller, HOST_BOUND, steady(0.9), seed).run(400)
        controller.begin()
        rates.append(Simulation(controller, HOST_BOUND, steady(0.0), seed).run(20).rate * HOST_BOUND.verify(1))
    assert sum(rates) / len(rates) >= 0.9


def test_nothing_is_tried_where_even_a_perfect_draft_would_not_pay() -> None:
    controller = Controller(HOPELESS, 8)
    lengths = Simulation(controller, HOPELESS, steady(1.0)).run(500).lengths
    assert set(lengths) == {1}


def test_a_longer_block_is_used_for_better_acceptance() -> None:
    lengths = []
    for p in (0.5, 0.8, 0.97):
        controller = Controller(CPU, 8)
        Simulation(controller, CPU, steady(p)).run(400)
        lengths.append(controller.block_length or 1)
    assert lengths == sorted(lengths) and lengths[-1] == 8 and lengths[0] < 8


def test_what_one_answer_taught_helps_the_next_and_its_topic_does_not_stick() -> None:
    controller = Controller(CPU, 8)
    Simulation(controller, CPU, steady(0.95)).run(300)
    end = controller.acceptance
    controller.begin()
    assert 0.6 < controller.acceptance < end


def test_a_machine_slower_at_wide_passes_than_measured_is_noticed() -> None:
    """Another program on the other core: the loop's own times correct the curve, so it parks instead of crawling."""
    controller = Controller(CPU, 8)
    slow = CostCurve(WIDTHS, (0.043, 0.2, 0.25, 0.3), CPU.draft_s)
    Simulation(controller, slow, steady(0.6)).run(300)
    assert controller.parked


def test_one_stall_does_not_decide() -> None:
    controller = Controller(CPU, 8)
    Simulation(controller, CPU, steady(0.9)).run(200)
    controller.observe(Choice(controller.block_length), 7, 7, 60.0)
    assert not controller.choose().parked


def test_unknown_times_are_left_out() -> None:
    controller = Controller(CPU, 8)
    controller.observe(Choice(4), 3, 3, math.nan)
    controller.observe_plain(1, math.nan)
    assert math.isfinite(controller._rate(4)) and math.isfinite(controller._plain_rate())
