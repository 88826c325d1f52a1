"""The controller with a lookup, alone and beside a draft, on invented texts and costs: it gains where text repeats."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from engine.decoding.controller import Choice, Controller, FixedLength
from engine.decoding.costs import CostCurve
from engine.decoding.odds import LookupOdds
from engine.drafters.protocol import Foreseen

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
CPU = CostCurve(WIDTHS, (0.043, 0.050, 0.060, 0.066, 0.085, 0.13, 0.22), (0.0, 0.010, 0.011, 0.013, 0.015, 0.015, 0.015))
CHEAP = CostCurve(WIDTHS, (0.040, 0.041, 0.042, 0.044, 0.048, 0.056, 0.072), (0.0, *[0.002] * 6))
HOPELESS = CostCurve(WIDTHS, (0.040, 0.080, 0.160, 0.320, 0.64, 1.28, 2.56), (0.0, *[0.05] * 6))


@dataclass
class Text:
    """What would be foreseen at each token (None: nothing), whether it comes so, and whether the draft would be right there."""

    matched: list[int | None] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    drafted: list[bool] = field(default_factory=list)


def written(seed: int, tokens: int, passage: float, fresh: float, draft: float, chance: float = 0.15) -> Text:
    """Copied passages of about ``passage`` tokens between about ``fresh`` new ones, whose single matches are right by chance."""
    numbers, text = random.Random(seed), Text()
    while len(text.matched) < tokens:
        for _ in range(1 + int(numbers.expovariate(1 / fresh))):
            text.matched.append(1 if numbers.random() < 0.5 else None)
            text.right.append(text.matched[-1] is not None and numbers.random() < chance)
        length = int(numbers.expovariate(1 / passage)) if passage else 0
        text.matched += range(1, length + 1)
        text.right += [True] * (length - 1) + [False] * min(1, length)
    text.drafted = [numbers.random() < draft for _ in text.matched]
    return text


def ahead(matched: int | None, tokens: int = 63) -> list[Foreseen]:
    """What a lookup has to propose after so long a match; None: nothing."""
    return [] if matched is None else [Foreseen(min(matched + index, 64)) for index in range(tokens)]


def run_on(text: Text, controller: Controller | FixedLength, costs: CostCurve) -> float:
    """Tokens a second of decoding ``text``."""
    place, seconds, end = 0, 0.0, len(text.matched)
    while place < end:
        choice = controller.choose(ahead(text.matched[place]))
        if choice.plain:
            steps = 0
            while steps < choice.steps and place + steps < end:
                woken = controller.wakes(ahead(text.matched[place + steps - 1])) if steps else False
                steps += 1
                if woken:  # what wakes the stretch is known one step late
                    break
            taken, proposed = steps, 0
            controller.observe_plain(steps, steps * costs.verify(1))
            seconds += steps * costs.verify(1)
        else:
            proposed = min(choice.length, end - place) - 1
            came = text.right if choice.source == "lookup" else text.drafted
            accepted = next((slot for slot in range(proposed) if not came[place + slot]), proposed)
            taken = accepted + 1
            spent = costs.verify(proposed + 1) if choice.source == "lookup" else costs.cycle(choice.length)
            controller.observe(choice, proposed, accepted, spent)
            seconds += spent
        window = range(place, min(place + taken, end))
        controller.observe_foreseen([(Foreseen(known), text.right[at]) for at in window if (known := text.matched[at]) is not None])
        place += taken
    return end / seconds


TEXTS = {
    "new": {"passage": 0, "fresh": 20, "draft": 0.3},
    "phrases": {"passage": 3, "fresh": 8, "draft": 0.5},
    "edit": {"passage": 15, "fresh": 2, "draft": 0.6},
    "copy": {"passage": 80, "fresh": 3, "draft": 0.6},
    "misleading": {"passage": 2, "fresh": 3, "draft": 0.1},
    "code": {"passage": 6, "fresh": 5, "draft": 0.85},
}
SEEDS = range(6)


@pytest.mark.parametrize("costs", [CPU, CHEAP, HOPELESS], ids=["cpu", "cheap", "hopeless"])
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("block", [1, 8], ids=["alone", "companion"])
def test_never_much_slower_than_plain(costs: CostCurve, kind: str, block: int) -> None:
    plain = 1 / costs.verify(1)
    for seed in SEEDS:
        rate = run_on(written(seed, 400, **TEXTS[kind]), Controller(costs, block, LookupOdds()), costs)
        assert rate >= 0.97 * plain


@pytest.mark.parametrize("costs", [CPU, CHEAP], ids=["cpu", "cheap"])
@pytest.mark.parametrize("kind", TEXTS)
def test_beside_a_draft_it_is_near_the_best_that_hindsight_would_fix(costs: CostCurve, kind: str) -> None:
    """On average over texts: 0.95 of the best of plain decoding, every block of the draft alone and every lookup alone."""
    texts = [written(seed, 400, **TEXTS[kind]) for seed in SEEDS]
    chosen = sum(run_on(text, Controller(costs, 8, LookupOdds()), costs) for text in texts)
    fixed = [FixedLength(length) for length in range(2, 9)] + [FixedLength(length, "lookup") for length in WIDTHS[1:]]
    best = [max(1 / costs.verify(1), *(run_on(text, policy, costs) for policy in fixed)) for text in texts]
    assert chosen >= 0.95 * sum(best)


@pytest.mark.parametrize("kind", ["edit", "copy", "code"])
def test_both_sources_together_beat_either_alone_where_text_repeats(kind: str) -> None:
    texts = [written(seed, 400, **TEXTS[kind]) for seed in SEEDS]
    both, lookup, draft = (
        sum(run_on(text, Controller(CPU, block, odds), CPU) for text in texts)
        for block, odds in ((8, LookupOdds()), (1, LookupOdds()), (8, None))
    )
    assert both > lookup and both > draft


def test_a_copied_text_is_many_times_faster_than_plain() -> None:
    rate = run_on(written(0, 400, passage=80, fresh=3, draft=0.0), Controller(CPU, 1, LookupOdds()), CPU)
    assert rate > 4 / CPU.verify(1)


def test_more_is_proposed_the_longer_the_match() -> None:
    controller = Controller(CPU, 1, LookupOdds())
    lengths = [controller.choose(ahead(matched)).length for matched in (2, 4, 10, 40)]
    assert lengths == sorted(lengths) and lengths[0] <= 8 and lengths[-1] >= 32


def test_no_more_slots_are_used_than_there_is_to_propose() -> None:
    controller = Controller(CPU, 1, LookupOdds())
    for tokens in (1, 5, 20):
        assert controller.choose(ahead(40, tokens)) == Choice(tokens + 1, source="lookup")


def test_where_matches_went_on_differently_before_the_draft_takes_over_and_elsewhere_lookup_stays() -> None:
    controller = Controller(CPU, 8, LookupOdds())
    doubtful = [Foreseen(4, doubtful=True), *ahead(5, 62)]
    controller.observe_foreseen([(doubtful[0], False)] * 4)
    assert controller.choose(doubtful).source == "draft"
    assert controller.choose(ahead(4)).source == "lookup"


def test_without_a_match_the_draft_proposes_and_without_a_draft_nothing_does() -> None:
    beside, alone = Controller(CPU, 8, LookupOdds()), Controller(CPU, 1, LookupOdds())
    assert beside.choose(ahead(None)).source == "draft" and not beside.choose(ahead(None)).plain
    nothing = alone.choose(ahead(None))
    assert nothing.plain and not nothing.parked, "there is nothing to propose: that is not parking"


def test_lookup_goes_on_while_the_draft_is_parked_and_the_pause_goes_on_behind_it() -> None:
    controller = Controller(CPU, 8, LookupOdds())
    while not controller.parked:
        choice = controller.choose(ahead(None))
        controller.observe(choice, choice.length - 1, 0, CPU.cycle(choice.length))
    assert controller.wakes(ahead(40)) and not controller.wakes(ahead(None))
    pause = controller.choose(ahead(None))
    controller.observe_plain(3, 3 * CPU.verify(1))
    looked = controller.choose(ahead(40))
    assert (looked.source, looked.plain) == ("lookup", False) and controller.block_length == 0
    controller.observe(looked, looked.length - 1, looked.length - 1, CPU.verify(looked.length))
    assert controller.choose(ahead(None)) == Choice(1, pause.steps - 3)


def test_lookup_alone_is_parked_where_even_the_longest_match_would_not_pay_and_says_so() -> None:
    controller = Controller(HOPELESS, 1, LookupOdds())
    assert controller.choose(ahead(60)).parked and controller.block_length == 0
    assert controller.reason.startswith("Plain decoding is faster here")
    paying = Controller(CPU, 1, LookupOdds())
    assert not paying.choose(ahead(60)).plain and paying.block_length == 64
    assert paying.reason == "Up to 63 tokens are looked up where the text repeats itself"


def test_wide_passes_slower_than_measured_make_short_matches_not_worth_it() -> None:
    controller = Controller(CPU, 1, LookupOdds())
    before = controller.choose(ahead(4))
    controller.observe(before, before.length - 1, before.length - 1, 4 * CPU.verify(before.length))
    assert not before.plain and controller.choose(ahead(4)).plain


def test_a_new_answer_forgets_how_the_last_one_repeated_itself() -> None:
    odds = LookupOdds()
    controller = Controller(CPU, 1, odds)
    controller.observe_foreseen([(Foreseen(2), True)] * 30)
    before = odds.chance(Foreseen(2))
    controller.begin()
    assert odds.chance(Foreseen(2)) < before
