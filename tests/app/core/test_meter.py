"""The meter shows what the events say: while they come, when they stop, and at the end the engine's own totals."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.meter import CHOSE_PLAIN, NO_DRAFT, RIBBON_LENGTH, Meter, MeterSnapshot, RibbonCycle
from app.core.rate_window import WINDOW_S
from engine import BlockLength, Cycle, Event, Finished, LoadProgress, PrefillProgress, Started, Statistics
from tests.app.core import recordings
from tests.app.core.record_events import REQUESTS, read
from tests.app.core.recordings import PAIR, PAIR_WITHOUT_DRAFT, answer

LATE_S = 0.004  # how long an event is on its way to the window
START = 1000.0  # the window's clock when the request was sent


def arrival(event: Event) -> float | None:
    return None if not hasattr(event, "at_s") else START + event.at_s + LATE_S


def play(events: list[Event], meter: Meter | None = None) -> tuple[Meter, float]:
    """Feeds the events when they would arrive; returns the meter and the time of the last one."""
    meter, now = meter or Meter(), START
    if meter.snapshot(now).phase == "idle":
        meter.reset(now, "dflash", PAIR)
    for event in events:
        now = arrival(event) or now
        meter.feed(event, now)
    return meter, now


def of(events: list[Event], kind: type) -> list:
    return [event for event in events if isinstance(event, kind)]


RECORDED = [
    recordings.CUT_BY_LIMIT, recordings.ENDED, recordings.STOPPED, recordings.PLAIN, recordings.FELL_BACK,
    recordings.ONE_TOKEN,
]  # fmt: skip


@pytest.mark.parametrize("events", RECORDED)
def test_the_totals_counted_from_the_events_are_the_engines_own_at_the_end(events: list[Event]):
    statistics: Statistics = events[-1].statistics
    before, now = play(events[:-1])
    counted = before.snapshot(now)
    meter, now = play(events)
    shown = meter.snapshot(now)
    for snapshot in (counted, shown):
        assert snapshot.tokens == statistics.completion_tokens
        assert snapshot.acceptance_rate == statistics.acceptance_rate
        assert (snapshot.tokens_per_cycle or 0.0) == pytest.approx(statistics.tokens_per_cycle)
        assert snapshot.ttft_s == pytest.approx(statistics.ttft_s)
        assert snapshot.mode == statistics.mode
        # These answers are shorter than the window, so the live rate is already the final one.
        assert snapshot.tok_s == pytest.approx(statistics.decode_tok_s)
    assert shown.tok_s == statistics.decode_tok_s


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 16), st.floats(0.001, 0.5)), max_size=80).map(
        lambda cycles: [(max(p, a), a, min(c, a + 1), s) for p, a, c, s in cycles]
    )
)
def test_any_sequence_of_cycles_adds_up_to_the_final_statistics(cycles: list[tuple[int, int, int, float]]):
    events = answer(cycles)
    statistics = events[-1].statistics
    meter, now = play(events)
    shown = meter.snapshot(now)
    assert shown.tokens == statistics.completion_tokens
    assert (shown.tokens_per_cycle or 0.0) == pytest.approx(statistics.tokens_per_cycle)
    assert shown.acceptance_rate == statistics.acceptance_rate
    assert shown.tok_s == statistics.decode_tok_s
    assert shown.ribbon == tuple(RibbonCycle(a, p, c) for p, a, c, _ in cycles[-RIBBON_LENGTH:])


@pytest.mark.parametrize("name", REQUESTS)
def test_the_totals_agree_on_recorded_runs_of_the_real_engine(name: str):
    events = read(name)
    statistics: Statistics = events[-1].statistics
    before, now = play(events[:-1])
    counted = before.snapshot(now)
    meter, now = play(events)
    shown = meter.snapshot(now)
    for snapshot in (counted, shown):
        assert snapshot.tokens == statistics.completion_tokens
        assert snapshot.acceptance_rate == statistics.acceptance_rate
        assert snapshot.tokens_per_cycle == statistics.tokens_per_cycle
        assert snapshot.ttft_s == pytest.approx(statistics.ttft_s, abs=0.001)
    assert shown.tok_s == statistics.decode_tok_s
    if statistics.decode_s < WINDOW_S:
        assert counted.tok_s == pytest.approx(statistics.decode_tok_s, rel=0.01)
    assert shown.phase == ("stopped" if name.endswith("cancelled") else "done")


def test_a_cycle_cut_by_the_token_limit_counts_what_entered_the_answer():
    meter, now = play(recordings.CUT_BY_LIMIT)
    shown = meter.snapshot(now)
    assert shown.tokens == 1 + 4 + 8 + 1 + 3 + 2
    assert shown.tokens_per_cycle == 18 / 5
    assert shown.acceptance_rate == 17 / 35
    assert shown.ribbon[-1] == RibbonCycle(accepted=5, proposed=7, committed=2)


def test_the_phases_follow_the_events():
    meter = Meter()
    assert meter.snapshot(0.0) == MeterSnapshot()
    meter.feed(LoadProgress("Reading weights", 0.5), 1.0)
    shown = meter.snapshot(1.0)
    assert (shown.phase, shown.load_stage, shown.load_fraction) == ("loading", "Reading weights", 0.5)
    meter.reset(2.0)
    assert meter.snapshot(2.0).phase == "idle"
    meter.reset(3.0, "auto", PAIR)
    assert meter.snapshot(3.0).phase == "prefill"
    events = recordings.ENDED
    meter.feed(events[0], 3.2)
    shown = meter.snapshot(3.2)
    assert (shown.phase, shown.prefill_done, shown.prefill_total) == ("prefill", 10, 20)
    assert shown.ttft_s is None and shown.mode is None and shown.block_length is None
    for event in events[1:-1]:
        meter.feed(event, 3.5)
        assert meter.snapshot(3.5).phase == ("prefill" if isinstance(event, PrefillProgress) else "decoding")
    assert meter.snapshot(3.5).block_length == 8
    meter.feed(events[-1], 3.6)
    assert meter.snapshot(3.6).phase == "done"
    meter.reset(4.0)
    assert meter.snapshot(4.0) == MeterSnapshot()


def test_a_stopped_answer_keeps_its_numbers():
    meter, now = play(recordings.STOPPED)
    shown = meter.snapshot(now + 60)
    assert (shown.phase, shown.tokens) == ("stopped", 8)
    assert shown.tok_s == recordings.STOPPED[-1].statistics.decode_tok_s


def test_an_answer_stopped_before_its_first_token_shows_nothing_that_was_not_measured():
    nothing = Statistics("dflash", 20, 0, 0, 0.0, 0.0, 0, 0, 0, 0.0, 0.0, 0, None)
    meter, now = play([PrefillProgress(10, 20, 0.1), Finished("cancelled", "", (), nothing)])
    shown = meter.snapshot(now)
    assert (shown.phase, shown.tokens, shown.tok_s, shown.ttft_s) == ("stopped", 0, 0.0, None)
    assert shown.tokens_per_cycle is None and shown.acceptance_rate is None


def test_an_error_freezes_the_numbers():
    meter, now = play(recordings.ENDED[:-1])
    running = meter.snapshot(now)
    meter.interrupt(now)
    shown = meter.snapshot(now + 60)
    assert (shown.phase, shown.tok_s, shown.tokens) == ("stopped", running.tok_s, running.tokens)


def steady(cycle_s: float, tokens: int, seconds: float) -> list[Event]:
    return answer([(tokens, tokens - 1, tokens, cycle_s)] * round(seconds / cycle_s))[:-1]


@pytest.mark.parametrize(("cycle_s", "tokens"), [(0.02, 8), (0.2, 8), (0.6, 16), (0.03, 1), (0.5, 1)])
def test_bursts_of_a_block_do_not_make_the_rate_jump(cycle_s: float, tokens: int):
    """Looked at 60 times a second, between the bursts too, the rate of even cycles is the same all the time."""
    events = steady(cycle_s, tokens, 8.0)
    meter = Meter()
    meter.reset(START, "dflash", PAIR)
    now, rates = START, []
    for event in events:
        due = arrival(event) or now
        while now < due:
            now = min(due, now + 1 / 60)
            rates.append(meter.snapshot(now).tok_s)
        meter.feed(event, now)
    first = next(i for i, rate in enumerate(rates) if rate > 0)
    assert rates[first:] == pytest.approx([tokens / cycle_s] * len(rates[first:]))


def test_the_rate_follows_a_change_within_the_window_and_never_overshoots():
    events = answer([(7, 7, 8, 0.1)] * 50 + [(7, 0, 1, 0.1)] * 50)[:-1]
    meter, rates = Meter(), []
    meter.reset(START, "dflash", PAIR)
    for event in events:
        now = arrival(event)
        meter.feed(event, now)
        rates.append(meter.snapshot(now).tok_s)
    assert max(rates) == pytest.approx(80)
    assert rates[-1] == pytest.approx(10)
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(rates[60:]))
    half_way = [rate for rate in rates if 15 < rate < 75]
    assert len(half_way) >= 20  # two seconds of the window, not a cliff


def test_the_rate_sinks_to_nothing_when_the_engine_stalls():
    meter, now = play(steady(0.05, 4, 4.0))
    at_once, soon, later, long_after = (meter.snapshot(now + wait).tok_s for wait in (0.0, 0.05, 1.0, 5.0))
    assert at_once == soon == pytest.approx(80)
    assert 30 < later < 60
    assert long_after == 0.0


def test_late_delivery_does_not_change_the_rate():
    """Events that the window gets in a heap are still counted at the times the engine gave them."""
    events = steady(0.05, 4, 4.0)
    meter = Meter()
    meter.reset(START, "dflash", PAIR)
    for event in events[:40]:
        meter.feed(event, arrival(event))
    now = START + 10.0
    for event in events[40:]:
        meter.feed(event, now)
    heaped = meter.snapshot(arrival(events[-1]))
    assert heaped.tok_s == pytest.approx(80)


def test_the_clocks_of_engine_and_window_may_start_anywhere():
    meter = Meter()
    meter.reset(-5.0, "dflash", PAIR)
    for event in steady(0.05, 4, 1.0):
        meter.feed(event, event.at_s + 12345.0)
    assert meter.snapshot(12346.25).tok_s == pytest.approx(80)


@pytest.mark.parametrize(
    ("asked", "pair", "events", "reason"),
    [
        ("dflash", PAIR, recordings.ENDED, None),
        ("auto", PAIR, recordings.ENDED[:1], None),
        ("baseline", PAIR, recordings.PLAIN, CHOSE_PLAIN),
        ("baseline", PAIR, [], CHOSE_PLAIN),
        ("auto", PAIR_WITHOUT_DRAFT, [], "No draft was trained for X."),
        ("auto", PAIR_WITHOUT_DRAFT, recordings.PLAIN, "No draft was trained for X."),
        ("auto", None, recordings.PLAIN, NO_DRAFT),
        ("dflash", PAIR, recordings.FELL_BACK, "The draft does not fit this target."),
        ("baseline", PAIR, recordings.FELL_BACK, "The draft does not fit this target."),
        ("lookup", PAIR_WITHOUT_DRAFT, [], None),
    ],
)
def test_the_reason_is_given_whenever_speculation_is_off(asked, pair, events: list[Event], reason: str | None):
    meter = Meter()
    meter.reset(START, asked, pair)
    for event in events:
        meter.feed(event, START + 1)
    assert meter.snapshot(START + 1).off_reason == reason


def test_an_idle_meter_says_already_that_a_pair_has_no_draft():
    meter = Meter()
    meter.reset(START, None, PAIR_WITHOUT_DRAFT)
    assert meter.snapshot(START).off_reason == "No draft was trained for X."


def test_started_alone_counts_one_token_and_no_rate():
    meter, now = play(of(recordings.ENDED, Started))
    shown = meter.snapshot(now)
    assert (shown.tokens, shown.tok_s, shown.tokens_per_cycle) == (1, 0.0, None)


def test_parked_speculation_shows_its_reason_until_it_comes_back():
    meter = Meter()
    meter.reset(START, "auto", PAIR)
    meter.feed(Started("dflash", 20, 0, 8, 0.1), START + 0.1)
    assert meter.snapshot(START + 0.1).block_length == 8 and not meter.snapshot(START + 0.1).parked
    meter.feed(BlockLength(0, "Plain decoding is faster here: the draft is right 20% of the time", 0.2), START + 0.2)
    meter.feed(Cycle(0, 0, 0, 1, 0.25), START + 0.25)
    parked = meter.snapshot(START + 0.3)
    assert parked.parked and parked.block_length == 0 and parked.off_reason is not None and "faster" in parked.off_reason
    meter.feed(BlockLength(4, "3 tokens are proposed", 0.4), START + 0.4)
    back = meter.snapshot(START + 0.4)
    assert not back.parked and back.block_length == 4 and back.off_reason is None


def test_a_new_request_forgets_that_the_last_one_was_parked():
    meter = Meter()
    meter.reset(START, "auto", PAIR)
    meter.feed(Started("dflash", 20, 0, 8, 0.1), START)
    meter.feed(BlockLength(0, "Plain decoding is faster here", 0.2), START)
    meter.reset(START + 5, "auto", PAIR)
    assert not meter.snapshot(START + 5).parked and meter.snapshot(START + 5).off_reason is None
