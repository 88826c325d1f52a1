"""Side by side: both clocks, the numbers of the events, and a verdict that never calls unequal answers equal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.arms import DFLASH, LOOKUP, Arm, arm_of, chosen, offered
from app.core.arms import PLAIN as PLAIN_ARM
from app.core.blocks import split_blocks
from app.core.compare import SNIPPET_LENGTH, ArmRecorder, Comparison, words_that_differ
from app.core.compare_record import from_record, to_record
from engine import Event, Finished, TextDelta, Verdict
from tests.app.core.record_events import read
from tests.app.core.recordings import PAIR, PAIR_WITHOUT_DRAFT, answer

WORDS = ["A", " rainbow", " forms", " when", " the", " light", " bends", "."]
PLAIN = [(0, 0, 1, 0.1)] * 7
FAST = [(7, 3, 4, 0.1), (7, 2, 3, 0.1)]


def recorded(kind: Arm, events: list[Event]) -> ArmRecorder:
    arm = ArmRecorder(kind)
    for event in events:
        arm.feed(event)
    return arm


def compared(dflash: list[Event], baseline: list[Event] | None = None) -> Comparison:
    plain = answer(PLAIN, mode="baseline", words=WORDS) if baseline is None else baseline
    return Comparison("Explain rainbows", recorded(PLAIN_ARM, plain), recorded(DFLASH, dflash))


def with_tokens(events: list[Event], ids: list[int], text: str) -> list[Event]:
    """The same run with another answer."""
    end = events[-1]
    assert isinstance(end, Finished)
    return [*events[:-1], Finished(end.reason, text, tuple(ids), end.statistics)]


def test_identical_answers_are_reported_with_the_speedup_of_their_decoding():
    run = compared(answer(FAST, words=WORDS))
    assert run.speedup == pytest.approx(3.5)
    assert run.left.tok_s == pytest.approx(10) and run.right.tok_s == pytest.approx(35)
    assert run.right.statistics.tokens_per_cycle == 3.5 and run.right.statistics.acceptance_rate == 5 / 14
    assert run.duration_s == run.left.duration_s == pytest.approx(0.25 + 0.7)
    assert run.right.duration_s == pytest.approx(0.25 + 0.2)
    assert run.verdict == Verdict(True, 8, None, True)
    assert run.texts_there is None
    assert run.verdict_line() == "3.5x · identical, 8 tokens"


def test_recorded_runs_of_the_real_engine_are_identical_and_replay_to_their_whole_text():
    run = Comparison("", recorded(PLAIN_ARM, read("baseline_limit")), recorded(DFLASH, read("dflash_limit")))
    assert run.left.text == run.left.finished.text
    assert run.right.text == run.right.finished.text
    assert run.right.text_at(run.duration_s) == run.left.text_at(run.duration_s) == run.right.text
    assert run.verdict_line() == f"{run.speedup:.1f}x · identical, 48 tokens"
    decode_s = [arm.finished.statistics.decode_s for arm in (run.left, run.right)]
    assert run.speedup == pytest.approx(decode_s[0] / decode_s[1])


def test_the_first_token_that_differs_is_named_with_both_texts():
    words = [*WORDS[:4], " a", *WORDS[5:]]
    run = compared(with_tokens(answer(FAST, words=words), [0, 1, 2, 3, 99, 5, 6, 7], "".join(words)))
    assert run.verdict.identical is False and run.verdict.first_difference == 4
    assert run.texts_there == (" the", " a")
    assert run.verdict_line() == "differs from token 4: “ the” / “ a”"


def test_an_answer_that_ends_earlier_on_its_own_differs_at_its_end():
    run = compared(answer(FAST[:1], words=WORDS[:5]))
    assert run.verdict.first_difference == 5
    assert run.verdict_line() == "differs from token 5: “ light” / the end"


def test_other_tokens_with_the_same_text_still_differ():
    same = answer(FAST, words=WORDS)
    run = compared(with_tokens(same, [0, 1, 2, 3, 4, 5, 6, 99], "".join(WORDS)))
    assert run.verdict_line() == "differs from token 7"


def test_a_stopped_answer_is_not_called_identical():
    run = compared(answer(FAST[:1], words=WORDS[:5], reason="cancelled"))
    assert run.verdict == Verdict(True, 5, None, False)
    assert run.verdict_line() == "not comparable: stopped"


def test_a_stopped_answer_that_differs_already_is_said_to_differ():
    stopped = answer(FAST[:1], words=["A", " sun", " forms", " when", " the"], reason="cancelled")
    run = compared(with_tokens(stopped, [0, 50, 2, 3, 4], "A sun forms when the"))
    assert run.verdict_line() == "differs from token 1: “ rainbow” / “ sun”"


def test_a_failed_or_running_arm_has_no_verdict():
    run = compared(answer(FAST, words=WORDS)[:-1])
    assert (run.verdict, run.speedup, run.gains) == (None, None, None)
    assert run.verdict_line() == "running"
    run.right.fail("The engine stopped.")
    assert run.verdict_line() == "not comparable: failed"


def test_one_token_has_no_speed_and_no_speedup():
    run = compared(answer([], words=["A"]), answer([], mode="baseline", words=["A"]))
    assert run.speedup is None
    assert run.verdict_line() == "identical, 1 token"


def test_a_replay_shows_each_text_as_it_stood_at_that_time():
    run = compared(answer(FAST, words=WORDS))
    assert run.left.text_at(0.2) == run.right.text_at(0.2) == ""
    assert run.left.text_at(0.25) == "A"
    assert run.left.text_at(0.36) == "A rainbow"
    assert run.right.text_at(0.36) == "A rainbow forms when the"
    for arm in run.arms:
        assert arm.text_at(run.duration_s) == "".join(WORDS)


def test_text_that_comes_after_the_last_token_is_part_of_the_replay():
    events = answer(FAST, words=WORDS)
    late = TextDelta(" held back", (), 0.5)
    run = compared([*events[:-1], late, events[-1]])
    assert run.right.duration_s == 0.5
    assert run.right.text.endswith(" held back")
    assert run.right.text_at(run.duration_s) == run.right.text


@given(st.text("ab \n", max_size=30), st.text("ab \n", max_size=30))
def test_the_words_that_differ_come_from_the_same_place_and_differ(one: str, other: str):
    here, there = words_that_differ(one, other)
    if one == other:
        assert (here, there) == ("", "")
        return
    assert here != there
    assert here in one and there in other
    assert max(len(here), len(there)) <= 2 * SNIPPET_LENGTH


def test_whole_words_are_shown_where_only_their_ends_differ():
    assert words_that_differ("say there now", "say their now") == (" there", " their")
    assert words_that_differ("there", "their") == ("there", "their")
    assert words_that_differ("say the cat", "say there") == (" the cat", " there")
    assert words_that_differ("same", "same but more") == ("", " but")


def test_the_report_holds_the_verdict_the_numbers_and_both_answers():
    words = [*WORDS[:4], " a", *WORDS[5:]]
    run = compared(with_tokens(answer(FAST, words=words), [0, 1, 2, 3, 99, 5, 6, 7], "".join(words)))
    report = replace(run, pair=PAIR, environment={"Machine": "Apple M4, 16 GB"}).report_markdown()
    assert "**differs from token 4: “ the” / “ a”**" in report
    assert "- Machine: Apple M4, 16 GB\n" in report
    assert "- Identity: rounding or a fault at token 4: `slipstream bench` measures how near a tie it was\n" in report
    assert "- Draft: draft, block length 8\n" in report
    assert "| Speed | 10\u00a0tok/s | 35\u00a0tok/s |" in report
    assert "| Accepted | – | 36\u00a0% (5 of 14) |" in report
    for text in ("Explain rainbows", run.left.text, run.right.text):
        assert f"```\n{text}\n```" in report
    assert [block.kind for block in split_blocks(report)].count("table") == 1


def test_the_report_of_identical_answers_holds_the_answer_once():
    report = replace(compared(answer(FAST, words=WORDS)), pair=PAIR_WITHOUT_DRAFT).report_markdown()
    assert report.count("A rainbow forms") == 1
    assert "- Draft: none\n" in report
    assert "- Identity: no choice was near enough to a tie for rounding to change it\n" in report


def test_the_report_says_why_an_arm_fell_back_or_failed():
    fell_back = answer(PLAIN, mode="baseline", words=WORDS, fallback="The draft does not fit.")
    run = compared(fell_back)
    run.left.fail("The engine stopped.")
    report = replace(run, pair=PAIR).report_markdown()
    assert "Plain: The engine stopped." in report
    assert "DFlash: The draft does not fit." in report


def test_a_prompt_with_fences_cannot_break_the_report():
    run = Comparison("```py\nx\n```", ArmRecorder(PLAIN_ARM), ArmRecorder(DFLASH))
    codes = [block.text for block in split_blocks(replace(run, pair=PAIR).report_markdown()) if block.kind == "code"]
    assert codes == ["```py\nx\n```", "", ""]


def test_arms_are_kept_by_id_and_what_is_none_is_refused():
    for arm in (PLAIN_ARM, DFLASH, LOOKUP, Arm("dflash", 8)):
        assert arm_of(arm.id) == arm
    assert [arm_of(text) for text in ("", "fast", "lookup:8", "dflash:", "dflash:x")] == [None, None, None, DFLASH, None]


def test_a_pair_offers_what_it_can_do():
    assert [arm.id for arm in offered(PAIR)] == ["baseline", "dflash", "lookup", *(f"dflash:{n}" for n in (2, 3, 4, 6, 8))]
    assert offered(PAIR_WITHOUT_DRAFT) == offered(None) == (PLAIN_ARM, LOOKUP)


def test_a_choice_that_the_pair_cannot_do_becomes_one_that_it_can():
    assert chosen(("lookup", "dflash:4"), PAIR) == (LOOKUP, Arm("dflash", 4))
    assert chosen(("dflash:32", "nothing"), PAIR) == (PLAIN_ARM, DFLASH)
    assert chosen(("dflash", "dflash:4"), PAIR_WITHOUT_DRAFT) == (PLAIN_ARM, LOOKUP)


def test_only_the_faster_arm_of_identical_answers_gains_and_only_if_it_guesses_ahead():
    fast, slow = recorded(DFLASH, answer(FAST, words=WORDS)), recorded(PLAIN_ARM, answer(PLAIN, mode="baseline", words=WORDS))
    assert Comparison("", slow, fast).gains == "right" and Comparison("", fast, slow).gains == "left"
    slow_draft = recorded(DFLASH, answer(PLAIN, words=WORDS))
    fast_plain = recorded(PLAIN_ARM, answer([(0, 0, 1, 0.01)] * 7, mode="baseline", words=WORDS))
    assert Comparison("", fast_plain, slow_draft).gains is None
    assert compared(answer(FAST[:1], words=WORDS[:5])).gains is None


def test_a_comparison_comes_back_from_plain_values_as_it_was():
    run = replace(compared(answer(FAST, words=WORDS)), pair=PAIR, environment={"memory": "16 GiB"}, at=1_700_000_000.0)
    run.left.fallback = "Plain decoding: no reason."
    back = from_record(json.loads(json.dumps(to_record(run))))
    assert back.verdict_line() == run.verdict_line() and back.report_markdown() == run.report_markdown()
    assert [back.right.text_at(t / 20) for t in range(20)] == [run.right.text_at(t / 20) for t in range(20)]
    assert back.duration_s == pytest.approx(run.duration_s, abs=1e-6) and back.gains == "right" and back.left.cut_short is None


def test_a_record_of_before_the_clock_was_kept_in_whole_numbers_is_read():
    run = compared(answer(FAST, words=WORDS))
    record = json.loads(json.dumps(to_record(run)))
    for side in ("left", "right"):
        del record[side]["clock"], record[side]["lengths"]
        record[side]["timeline"] = run.side(side).timeline
    back = from_record(json.loads(json.dumps(record)))
    assert back.right.timeline == run.right.timeline and back.duration_s == run.duration_s


@pytest.mark.parametrize("damage", [{"clock": [1]}, {"clock": ["x"] * 99}, {"lengths": [None]}])
def test_a_record_with_a_damaged_clock_is_none(damage):
    record = json.loads(json.dumps(to_record(compared(answer(FAST, words=WORDS)))))
    record["left"] |= damage
    with pytest.raises((TypeError, ValueError)):
        from_record(record)


def test_a_record_of_a_newer_version_is_read_as_far_as_it_is_known():
    record = json.loads(json.dumps(to_record(replace(compared(answer(FAST, words=WORDS)), pair=PAIR))))
    record["pair"]["colour"] = record["left"]["finished"]["statistics"]["joules"] = 3
    assert from_record(record).verdict_line() == "3.5x · identical, 8 tokens"


def test_a_record_from_before_options_were_kept_has_none():
    record = json.loads(json.dumps(to_record(compared(answer(FAST, words=WORDS)))))
    del record["settings"], record["options"]
    back = from_record(record)
    assert (back.settings, back.options) == ({}, "") and back.verdict_line() == "3.5x · identical, 8 tokens"
