"""The meter's details follow from the engine's events and the machine's costs, and nothing else."""

from __future__ import annotations

import pytest

from app.core.cycle_log import CycleLog
from app.core.meter import MeterSnapshot
from app.core.meter_text import details_text, state_words
from engine import BlockLength, CostCurve, Cycle, Fallback, Started
from tests.app.core.record_events import read
from tests.app.core.recordings import PAIR, answer

COSTS = CostCurve((1, 2, 4, 8), (0.010, 0.012, 0.014, 0.020), (0.002, 0.002, 0.002, 0.002))


def logged(*events) -> CycleLog:
    log = CycleLog()
    for event in events:
        log.feed(event)
    return log


def test_acceptance_by_slot_counts_only_blocks_that_had_the_slot():
    log = logged(Started("dflash", 5, 0, 8, 0.1), Cycle(0, 3, 3, 4, 0.2, "draft"), Cycle(1, 1, 0, 1, 0.3, "draft"),
                 Cycle(2, 3, 1, 2, 0.4, "draft"))  # fmt: skip
    assert [(figure.slot, figure.tried, figure.right) for figure in log.slots()] == [(1, 3, 2), (2, 2, 1), (3, 2, 1)]
    assert log.next_right == 4 / (3 + 1 + 2)  # of every proposal up to the first miss, that one counted


def test_looked_up_and_plain_cycles_say_nothing_about_the_draft():
    log = logged(Started("dflash", 5, 0, 8, 0.1), Cycle(0, 9, 9, 10, 0.2, "lookup"), Cycle(1, 0, 0, 1, 0.3))
    assert log.slots() == [] and log.next_right is None and log.expected(COSTS, 8) == []
    assert len(log.cycles) == 2


def test_expected_rates_are_those_of_the_controller_s_formula():
    log = logged(Started("dflash", 5, 0, 4, 0.1), *(Cycle(i, 2, 1, 2, 0.2 + i / 10, "draft") for i in range(4)))
    right = log.next_right
    assert right == 0.5
    expected = {each.length: each.tok_s for each in log.expected(COSTS, 4)}
    assert expected[1] == pytest.approx(100)
    assert expected[2] == pytest.approx((1 + 0.5) / 0.014) and expected[4] == pytest.approx(1.875 / 0.016)
    assert list(expected) == [1, 2, 3, 4]


def test_a_draft_that_is_always_right_has_no_endless_rate():
    log = logged(Started("dflash", 5, 0, 4, 0.1), Cycle(0, 3, 3, 4, 0.2, "draft"))
    assert max(each.tok_s for each in log.expected(COSTS, 8)) < 8 / 0.022


def test_every_cycle_stands_from_the_end_of_the_one_before():
    log = logged(*answer([(3, 1, 2, 0.5), (0, 0, 1, 0.25)]))
    assert [(cycle.began_s, cycle.ended_s, cycle.committed) for cycle in log.cycles] == [(0.25, 0.75, 2), (0.75, 1.0, 1)]


def test_a_real_answer_s_slots_add_up_to_what_was_accepted():
    log = logged(*read("dflash_limit"))
    assert log.cycles and sum(figure.right for figure in log.slots()) == sum(cycle.accepted for cycle in log.drafted)
    shares = [figure.share for figure in log.slots()]
    assert all(0 <= share <= 1 for share in shares)


def test_parked_speculation_is_said_in_the_engine_s_words():
    why = "Plain decoding is faster here: the draft's next token is right 12% of the time"
    log = logged(Started("dflash", 5, 0, 8, 0.1), Cycle(0, 7, 0, 1, 0.2, "draft"), BlockLength(0, why, 0.2))
    assert log.parked and state_words(log, MeterSnapshot()) == f"Parked. {why}."
    text = details_text(log, MeterSnapshot(tokens=3, tok_s=9.5), PAIR)
    assert why in text and "slot 1: 0\u00a0% of 1" in text and "9.5\u00a0tok/s" in text


def test_a_fallback_is_said_and_a_new_answer_forgets_it():
    log = logged(Fallback("The draft does not fit."), Started("baseline", 5, 0, 0, 0.1))
    words = state_words(log, MeterSnapshot(off_reason="The draft does not fit."))
    assert words == "Off. The draft does not fit." and not log.parked
    log.begin()
    assert state_words(log, MeterSnapshot()).startswith("No answer yet") and log.fallback is None
