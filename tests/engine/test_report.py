"""What reports and tables say: the fields scripts rely on, and a row for every outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.bench.run import summary
from engine.events import Finished, Statistics
from engine.report import answer_record
from engine.terminal import header, run_line, summary_lines

STATISTICS = Statistics(
    mode="dflash",
    prompt_tokens=30,
    cached_tokens=0,
    completion_tokens=21,
    ttft_s=0.25,
    decode_s=2.0,
    cycles=8,
    proposed=40,
    accepted=12,
    draft_s=0.4,
    verify_s=1.5,
    parked_cycles=0,
    fallback=None,
    lookup_proposed=3,
    lookup_accepted=2,
)
ANSWER = Finished("stop", "Řeka 虹", tuple(range(21)), STATISTICS)


def test_an_answer_is_recorded_with_every_figure() -> None:
    assert answer_record(ANSWER) == {
        "text": "Řeka 虹",
        "token_ids": list(range(21)),
        "mode": "dflash",
        "finish_reason": "stop",
        "prompt_tokens": 30,
        "cached_tokens": 0,
        "cache": "",
        "completion_tokens": 21,
        "ttft_s": 0.25,
        "decode_tok_s": 10.0,
        "cycles": 8,
        "proposed": 40,
        "accepted": 12,
        "tokens_per_cycle": 2.5,
        "acceptance_rate": 0.3,
        "draft_s": 0.4,
        "verify_s": 1.5,
        "parked_cycles": 0,
        "fallback": None,
        "approximate": False,
        "kept_tokens": 30,
        "dropped_messages": 0,
        "dropped_tokens": 0,
        "context_full": False,
        "lookup_proposed": 3,
        "lookup_accepted": 2,
    }


def test_a_record_without_text_is_the_same_less_the_text() -> None:
    whole = answer_record(ANSWER)
    del whole["text"]
    assert answer_record(ANSWER, with_text=False) == whole


def test_rates_that_never_came_to_be_are_not_invented() -> None:
    nothing = replace(STATISTICS, completion_tokens=0, decode_s=0.0, cycles=0, proposed=0, accepted=0)
    record = answer_record(replace(ANSWER, token_ids=(), text="", reason="cancelled", statistics=nothing))
    assert (record["decode_tok_s"], record["tokens_per_cycle"], record["acceptance_rate"]) == (0.0, 0.0, None)
    assert (record["finish_reason"], record["token_ids"]) == ("cancelled", [])


def a_run(**changes: Any) -> dict[str, Any]:
    dflash = answer_record(ANSWER, with_text=False)
    run = {"id": "rainbows", "mode": "dflash", "completion_tokens": 21, "speedup": 2.5, "identical": True, "first_divergence": None}
    return run | {"limit_tok_s": 10.5, "efficiency": 0.95, "baseline": dflash | {"decode_tok_s": 4.0}, "dflash": dflash} | changes


def test_a_row_has_both_rates_the_speed_up_and_the_verdict() -> None:
    assert run_line(a_run()).split() == [
        "rainbows",
        "4.0",
        "t/s",
        "10.0",
        "t/s",
        "2.50x",
        "2.50",
        "30%",
        "identical,",
        "21",
        "tokens",
    ]


def test_a_row_names_the_first_difference_and_its_margin() -> None:
    row = run_line(a_run(identical=False, first_divergence={"index": 17, "margin": 0.000123}))
    assert row.endswith("  differ at token 17 (margin 0.000123)")


def test_a_row_without_figures_has_dashes() -> None:
    silent = a_run()["dflash"] | {"acceptance_rate": None}
    assert run_line(a_run(speedup=None, dflash=silent)).split()[5:8] == ["-", "2.50", "-"]


@pytest.mark.parametrize("name", ["x", "a name much longer than the column that holds it"])
def test_rows_stand_under_their_headings(name: str) -> None:
    row = run_line(a_run(id=name))
    for heading, value in (("speed-up", "2.50x"), ("accepted", "30%")):
        end = header().index(heading) + len(heading)
        assert row[:end].endswith(value)
    assert len(row) <= 100


def test_the_summary_says_how_many_texts_are_identical() -> None:
    runs = [a_run(), a_run(identical=False, speedup=0.8, first_divergence={"index": 1, "margin": 0.1})]
    assert summary_lines({"runs": runs, "summary": summary(runs)}) == [
        "Median: 1.65x plain decoding, 2.50 tokens a cycle, slowest 0.80x; loop efficiency 0.95.",
        "1 of 2 texts identical.",
    ]


def test_the_summary_says_why_answers_did_not_run_as_asked_each_reason_once() -> None:
    run = a_run()
    plainly = {**run, "dflash": {**run["dflash"], "fallback": "Plain decoding: for a reason."}}
    runs = [run, plainly, plainly]
    assert summary_lines({"runs": runs, "summary": summary(runs)})[1:] == [
        "3 of 3 texts identical.", "2 of 3 answers: Plain decoding: for a reason."
    ]  # fmt: skip


def test_the_summary_of_nothing_says_so() -> None:
    assert summary_lines({"summary": summary([])}) == ["No prompt was finished."]
    runs = [a_run(speedup=None, efficiency=None)]
    assert summary_lines({"runs": runs, "summary": summary(runs)})[0].startswith("Median: - plain")
