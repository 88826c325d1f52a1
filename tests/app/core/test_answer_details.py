"""The details of an answer name every figure that is kept, and leave out what an older answer does not have."""

from __future__ import annotations

from app.core.answer_details import answer_details, note
from app.core.figures import answer_statistics, known_figures, statistics_line
from engine import GenerationRequest
from engine.events import Finished, Statistics


def finished(**changes) -> Finished:
    figures = {
        "mode": "dflash", "prompt_tokens": 1_200, "cached_tokens": 1_024, "completion_tokens": 101, "ttft_s": 0.31, "decode_s": 2.5,
        "cycles": 40, "proposed": 120, "accepted": 60, "draft_s": 0.4, "verify_s": 2.0, "parked_cycles": 3, "fallback": None,
        "thinking_tokens": 12, "thinking_s": 0.4, **changes,
    }  # fmt: skip
    return Finished("stop", "text", (1,), Statistics(**figures))


def test_every_figure_kept_with_an_answer_can_be_read():
    request = GenerationRequest.of("Why?", temperature=0.7, seed=42)
    rows = dict(answer_details(answer_statistics(finished(), request)))
    assert {name: text.replace("\u00a0", " ") for name, text in rows.items()} == {
        "Mode": "DFlash", "Speed": "40 tok/s", "First token after": "0.3 s", "Tokens of the answer": "101",
        "Thought of these": "12", "Tokens of the prompt": "1,200",
        "Read from the cache": "1,024", "Cycles": "40", "Tokens per cycle": "2.50",
        "Accepted": "50 %: 60 of 120", "Drafting": "0.4 s", "Checking": "2.0 s", "Plain steps while speculation was parked": "3",
        "Temperature": "0.70", "Seed": "42", "End": "The model ended it",
    }  # fmt: skip


def test_an_exact_answer_and_one_to_a_prompt_read_in_part_say_so():
    kept = answer_statistics(finished(kept_tokens=600), GenerationRequest.of("Why?", exact=True))
    rows = dict(answer_details(kept))
    assert (rows["Exact block lengths only"], rows["Read of these: approximate"]) == ("yes", "600")
    assert "approximate: 600 of 1,200 prompt tokens read" in statistics_line(kept) and known_figures(kept) == kept
    assert "Exact block lengths only" not in dict(answer_details(answer_statistics(finished(), GenerationRequest.of("Why?"))))


def test_plain_answers_have_no_row_for_what_was_not_proposed():
    rows = dict(answer_details(answer_statistics(finished(mode="baseline", proposed=0, accepted=0, draft_s=0.0))))
    assert "Accepted" not in rows and "Drafting" not in rows and rows["Mode"] == "Plain"


def test_an_older_or_missing_record_gives_what_it_has():
    assert answer_details(None) == [] and note(None) == ""
    assert answer_details({"completion_tokens": 5, "acceptance_rate": 0.5}) == [
        ("Tokens of the answer", "5"),
        ("Accepted", "50\u00a0%"),
    ]
    assert note({"fallback": "The draft does not fit."}) == "The draft does not fit."
