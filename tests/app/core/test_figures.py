"""Figures are worded the same everywhere, and only where they were measured."""

from __future__ import annotations

import json

import pytest

from app.core.figures import answer_statistics, percent, rate, seconds, size, size_of, statistics_line
from app.core.words import tr, trn, unbroken
from tests.app.core import recordings


def test_the_line_under_an_answer():
    assert statistics_line(answer_statistics(recordings.ENDED[-1])) == unbroken(
        "79 tok/s · 4.8 tokens/cycle · 54 % accepted · first 0.2 s"
    )
    assert statistics_line(answer_statistics(recordings.PLAIN[-1])) == unbroken("33 tok/s · plain decoding · first 0.2 s")
    assert statistics_line(answer_statistics(recordings.CUT_BY_LIMIT[-1])).endswith(" · cut at the token limit")
    assert statistics_line(answer_statistics(recordings.ONE_TOKEN[-1])) == unbroken("first 0.2 s · cut at the token limit")


def test_the_line_says_what_was_left_out_and_what_cut_the_answer():
    kept = {"completion_tokens": 5, "prompt_tokens": 4_000, "finish_reason": "length", "context_full": True}
    assert statistics_line(kept) == "cut where the context ends"
    assert statistics_line({**kept, "dropped_messages": 12}).startswith("without the oldest 12 messages · ")
    assert statistics_line({**kept, "kept_tokens": 2_016}).startswith("approximate: 2,016 of 4,000 prompt tokens read · ")


def test_the_line_says_what_came_out_of_the_prefix_cache():
    kept = {"completion_tokens": 5, "prompt_tokens": 4_012, "cached_tokens": 3_968, "cache": "memory and disk"}
    assert statistics_line(kept) == "3,968 of 4,012 prompt tokens from memory and disk"
    assert statistics_line({**kept, "cached_tokens": 0, "cache": "turned off"}) == ""


@pytest.mark.parametrize("kept", [None, {}, {"completion_tokens": 0, "ttft_s": 0.0}])
def test_no_line_where_nothing_was_measured(kept):
    assert statistics_line(kept) == ""


def test_statistics_of_another_version_leave_out_what_is_missing():
    assert statistics_line({"completion_tokens": 3, "decode_tok_s": 12.0, "unknown": 1}) == unbroken("12 tok/s")


def test_what_is_kept_with_an_answer_is_plain_and_complete():
    kept = answer_statistics(recordings.CUT_BY_LIMIT[-1])
    statistics = recordings.CUT_BY_LIMIT[-1].statistics
    assert json.loads(json.dumps(kept)) == kept
    assert kept["finish_reason"] == "length"
    for name in ("completion_tokens", "cycles", "decode_s", "decode_tok_s", "tokens_per_cycle", "acceptance_rate", "fallback"):
        assert kept[name] == getattr(statistics, name)


@pytest.mark.parametrize(
    ("worded", "expected"),
    [
        (rate(41.4), "41 tok/s"), (rate(4.12), "4.1 tok/s"), (rate(9.96), "10 tok/s"), (rate(1234), "1,234 tok/s"),
        (percent(0.714), "71 %"), (seconds(0.31), "0.3 s"), (seconds(59.97), "1 min 0 s"), (seconds(125), "2 min 5 s"),
    ],
)  # fmt: skip
def test_rounding_never_makes_a_figure_longer_than_it_has_to_be(worded: str, expected: str):
    assert worded == unbroken(expected)


def test_a_line_never_ends_between_a_number_and_its_unit():
    shares = [percent(0.3), seconds(4.2), seconds(90), size(9_100_000_000), size(85), size_of(3_100, 9_100), rate(41)]
    assert not [worded for worded in shares if " " in worded.replace(" of ", "").replace("min ", "")]
    assert tr("{time} ms and {count} GB", time=3, count=2) == "3\u00a0ms and 2\u00a0GB"
    assert trn("{count} s left", "{count} s left", 5) == "5\u00a0s left"
    assert unbroken("30 % of 24.3 MB/s, 1 h 10 min") == "30\u00a0% of 24.3\u00a0MB/s, 1\u00a0h 10\u00a0min"
    assert unbroken("3 seconds, 2 hits, top 3 Bs") == "3 seconds, 2 hits, top 3 Bs"
