"""The odds of looked-up tokens: a class of matched length learns from its own outcomes, now and in the long run."""

from __future__ import annotations

import pytest

from engine.decoding.odds import CLASSES, DOUBTFUL_GUESS, FIRST_GUESS, LookupOdds
from engine.drafters.protocol import Foreseen


def test_a_class_learns_from_its_own_outcomes_only() -> None:
    odds = LookupOdds()
    odds.observe([(Foreseen(5), False)] * 20)
    assert odds.chance(Foreseen(4)) == odds.chance(Foreseen(5)) < 0.2
    assert [odds.chance(Foreseen(matched)) for matched in (3, 6, 40)] == [FIRST_GUESS[CLASSES.index(c)] for c in (3, 6, 33)]


def test_what_is_doubtful_is_believed_less_and_learns_by_itself() -> None:
    odds = LookupOdds()
    assert all(odds.chance(Foreseen(matched, True)) <= odds.chance(Foreseen(matched)) for matched in CLASSES)
    sure = odds.chance(Foreseen(4))
    odds.observe([(Foreseen(4, True), False)] * 20)
    assert odds.chance(Foreseen(4)) == sure and odds.chance(Foreseen(4, True)) < 0.1


def test_an_answer_that_repeats_itself_is_soon_believed() -> None:
    odds = LookupOdds()
    odds.observe([(Foreseen(2), True)] * 6)
    assert odds.chance(Foreseen(2)) > 0.7


def test_the_next_answer_starts_from_the_long_run() -> None:
    odds = LookupOdds()
    odds.observe([(Foreseen(2), True)] * 10)
    learnt = odds.chance(Foreseen(2))
    odds.begin()
    assert FIRST_GUESS[CLASSES.index(2)] < odds.chance(Foreseen(2)) < learnt


def test_expected_tokens_are_the_sum_of_what_stands_after_each_slot() -> None:
    odds = LookupOdds()
    chances = [odds.chance(Foreseen(matched)) for matched in (2, 3, 4, 5)]
    expected = 1 + chances[0] + chances[0] * chances[1] + chances[0] * chances[1] * chances[2]
    assert odds.expected([Foreseen(matched) for matched in (2, 3, 4)], [2, 4]) == pytest.approx([1 + chances[0], expected])


def test_the_classes_are_few_and_cover_every_match() -> None:
    assert len(FIRST_GUESS) == len(DOUBTFUL_GUESS) == len(CLASSES) and CLASSES[0] == 0 and list(CLASSES) == sorted(set(CLASSES))
    assert all(0 < LookupOdds().chance(Foreseen(matched)) < 1 for matched in range(100))
