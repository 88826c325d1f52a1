"""A benchmark's figures: what they are made of, and the first place where two texts part."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.utils import load_model

from engine.bench.environment import environment
from engine.bench.run import limit_tok_s, run_prompt, run_suite, summary
from engine.bench.suite import Prompt
from engine.engine import Engine
from engine.errors import RequestError
from engine.events import Event, Finished, Mode, Statistics
from engine.request import GenerationRequest, Message

PROMPTS = [Prompt("one", (Message("user", "Count to ten."),)), Prompt("two", (Message("user", "虹?"),))]
PROMPT = PROMPTS[0]


class Altered:
    """The tiny engine, but a token of every DFlash answer is replaced, or its end cut off."""

    def __init__(self, engine: Engine, index: int, cut: bool = False):
        self._engine, self._index, self._cut = engine, index, cut
        self.info = engine.info

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def generate(self, request: GenerationRequest, cancel: threading.Event) -> Iterator[Event]:
        for event in self._engine.generate(request, cancel):
            if isinstance(event, Finished) and request.mode == "dflash":
                ids = list(event.token_ids)
                ids[self._index :] = [] if self._cut else [(ids[self._index] + 1) % 49152, *ids[self._index + 1 :]]
                event = replace(event, token_ids=tuple(ids))
            yield event


class Scripted:
    """Answers with prepared rates, one after the other for each mode; ``asked`` keeps the requests."""

    def __init__(self, engine: Engine, rates: dict[Mode, list[float]], cancel_after: int | None = None):
        self.info, self.count_tokens, self.measure_exactness = engine.info, lambda messages: 10, lambda cancel, progress: (2, 3)
        self._rates = {mode: iter(values) for mode, values in rates.items()}
        self._cancel_after, self.asked = cancel_after, list[tuple[Mode, int]]()

    def generate(self, request: GenerationRequest, cancel: threading.Event) -> Iterator[Event]:
        self.asked.append((request.mode, request.max_tokens))
        if self._cancel_after == len(self.asked):
            cancel.set()
        yield finished(request.mode, next(self._rates[request.mode]))


def finished(mode: Mode, rate: float, tokens: int = 11, **changes: Any) -> Finished:
    cycles = 5 if mode == "dflash" else 10
    numbers = Statistics(
        mode=mode,
        prompt_tokens=10,
        cached_tokens=0,
        completion_tokens=tokens,
        ttft_s=0.5,
        decode_s=(tokens - 1) / rate,
        cycles=cycles,
        proposed=20 if mode == "dflash" else 0,
        accepted=5 if mode == "dflash" else 0,
        draft_s=0.05 if mode == "dflash" else 0.0,
        verify_s=0.15,
        parked_cycles=0,
        fallback=None,
    )
    return Finished("length", "text", tuple(range(tokens)), replace(numbers, **changes))


def test_both_texts_of_a_real_pair_are_identical(tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_engine, "info", replace(tiny_engine.info, exact_widths=()))
    run = run_prompt(tiny_engine, PROMPT, 24, 1, threading.Event())
    assert run is not None
    assert (run["identical"], run["first_divergence"], run["completion_tokens"]) == (True, None, 24)
    assert run["identity_reason"] == "no choice was near enough to a tie for rounding to change it"
    assert run["baseline"]["token_ids"] == run["dflash"]["token_ids"]
    assert (run["baseline"]["mode"], run["dflash"]["mode"], run["baseline"]["proposed"]) == ("baseline", "dflash", 0)
    assert "text" not in run["baseline"] and "text" not in run["dflash"]
    assert run["speedup"] == pytest.approx(run["dflash"]["decode_tok_s"] / run["baseline"]["decode_tok_s"])
    assert run["efficiency"] == pytest.approx(run["dflash"]["decode_tok_s"] / run["limit_tok_s"])


@pytest.mark.parametrize("index", [0, 5, 23])
def test_a_difference_is_found_with_its_margin(tiny_engine: Engine, tiny_pair: str, index: int) -> None:
    run = run_prompt(Altered(tiny_engine, index), PROMPT, 24, 1, threading.Event())  # type: ignore[arg-type]
    assert run is not None and not run["identical"]
    assert run["first_divergence"]["index"] == index
    prefix = tiny_engine.encode(PROMPT.messages) + run["baseline"]["token_ids"][:index]
    model, _ = load_model(Path(tiny_pair.split("+")[0]))
    second, first = np.sort(np.array(model(mx.array([prefix]))[0, -1]))[-2:]
    margin = run["first_divergence"]["margin"]
    assert margin == pytest.approx(first - second, abs=1e-3)
    assert run["identity_reason"] == f"not a near-tie: margin {margin:.2g} at token {index}. Please report this."


def test_a_text_that_ends_early_differs_where_it_ends(tiny_engine: Engine) -> None:
    run = run_prompt(Altered(tiny_engine, 20, cut=True), PROMPT, 24, 1, threading.Event())  # type: ignore[arg-type]
    assert run is not None and not run["identical"] and run["first_divergence"]["index"] == 20


def test_a_report_has_environment_runs_and_summary(tiny_engine: Engine) -> None:
    seen: list[tuple[int, int, str]] = []
    report = run_suite(tiny_engine, PROMPTS, 8, progress=lambda done, total, run: seen.append((done, total, run["id"])))
    assert list(report) == ["environment", "runs", "summary"]
    assert [run["id"] for run in report["runs"]] == ["one", "two"]
    assert seen == [(1, 2, "one"), (2, 2, "two")]
    assert (report["summary"]["runs"], report["summary"]["identical_runs"]) == (2, 2)


def test_modes_alternate_and_the_median_run_is_kept(tiny_engine: Engine) -> None:
    engine = Scripted(tiny_engine, {"baseline": [10.0, 30.0, 20.0], "dflash": [90.0, 50.0, 60.0]})
    run = run_prompt(engine, PROMPT, 11, 3, threading.Event())  # type: ignore[arg-type]
    assert [mode for mode, _ in engine.asked] == ["baseline", "dflash"] * 3
    assert run is not None and run["speedup"] == pytest.approx(60 / 20)


def test_each_mode_is_warmed_up_before_it_counts(tiny_engine: Engine) -> None:
    engine = Scripted(tiny_engine, {"baseline": [1.0, 20.0], "dflash": [1.0, 40.0]})
    report = run_suite(engine, [PROMPT], 100)  # type: ignore[arg-type]
    assert engine.asked == [("baseline", 16), ("dflash", 16), ("baseline", 100), ("dflash", 100)]
    assert report["runs"][0]["speedup"] == pytest.approx(2.0)


@pytest.mark.parametrize("cancel_after", [5, 6])
def test_cancelled_the_runs_finished_by_then_are_kept(tiny_engine: Engine, cancel_after: int) -> None:
    """Request 5 and 6 belong to the second prompt, which is not finished then."""
    engine = Scripted(tiny_engine, {"baseline": [10.0] * 4, "dflash": [20.0] * 4}, cancel_after)
    report = run_suite(engine, [*PROMPTS, PROMPT], 11, cancel=threading.Event())  # type: ignore[arg-type]
    assert [run["id"] for run in report["runs"]] == ["one"]
    assert (report["summary"]["runs"], len(engine.asked)) == (1, cancel_after)


def test_a_target_without_a_draft_is_refused(tiny_engine: Engine) -> None:
    engine = Scripted(tiny_engine, {})
    engine.info = replace(tiny_engine.info, draft_name=None)
    with pytest.raises(RequestError, match="no draft to compare with"):
        run_suite(engine, PROMPTS, 8)  # type: ignore[arg-type]


def test_a_prompt_too_long_is_named_before_anything_is_measured(tiny_engine: Engine) -> None:
    engine = Scripted(tiny_engine, {})
    engine.count_tokens = lambda messages: tiny_engine.count_tokens(messages)
    with pytest.raises(RequestError, match="Prompt 'long': The prompt has"):
        run_suite(engine, [PROMPT, Prompt("long", (Message("user", "word " * 600),))], 8)  # type: ignore[arg-type]
    assert engine.asked == []


def test_the_limit_is_the_rate_of_draft_and_verify_alone() -> None:
    assert limit_tok_s(finished("dflash", 40.0)) == pytest.approx(10 / 0.2)
    assert limit_tok_s(finished("dflash", 40.0, draft_s=0.0, verify_s=0.0)) is None
    assert limit_tok_s(finished("dflash", 40.0, cycles=0)) is None


def a_run(speedup: float | None, **changes: Any) -> dict[str, Any]:
    side = {"decode_tok_s": 10.0, "ttft_s": 0.5, "tokens_per_cycle": 2.0, "acceptance_rate": 0.5}
    figures = {"completion_tokens": 11, "speedup": speedup, "limit_tok_s": 50.0, "efficiency": 0.9, "identical": True}
    return figures | {"baseline": side, "dflash": side} | changes


def test_the_summary_has_medians_the_slowest_and_the_count_of_identical_texts() -> None:
    side = {"decode_tok_s": 40.0, "ttft_s": 0.1, "tokens_per_cycle": 4.0, "acceptance_rate": None}
    figures = summary([a_run(2.0), a_run(0.8, identical=False), a_run(3.0, dflash=side, efficiency=None)])
    assert (figures["speedup"], figures["slowest_speedup"]) == (2.0, 0.8)
    assert (figures["runs"], figures["identical_runs"]) == (3, 2)
    assert (figures["dflash_tok_s"], figures["baseline_tok_s"], figures["dflash_ttft_s"]) == (10.0, 10.0, 0.5)
    assert (figures["tokens_per_cycle"], figures["acceptance_rate"], figures["efficiency"]) == (2.0, 0.5, 0.9)


def test_a_summary_of_nothing_has_no_figures() -> None:
    figures = summary([])
    assert (figures["runs"], figures["identical_runs"]) == (0, 0)
    assert figures["speedup"] is figures["slowest_speedup"] is figures["acceptance_rate"] is None


def test_an_answer_of_one_token_has_no_speed_to_compare(tiny_engine: Engine) -> None:
    run = run_prompt(tiny_engine, PROMPT, 1, 1, threading.Event())
    assert run is not None and run["identical"]
    assert run["speedup"] is None and run["limit_tok_s"] is None and run["efficiency"] is None


def test_the_environment_names_machine_versions_and_pair(tiny_engine: Engine) -> None:
    found = environment(tiny_engine.info)
    assert (found["pair"], found["dtype"], found["draft"]) == (tiny_engine.info.id, tiny_engine.info.dtype, "draft")
    assert found["cores"] >= 1 and found["memory_bytes"] > 2**28 and found["processor"]
    assert set(found["versions"]) == {"mlx", "mlx-lm"}
