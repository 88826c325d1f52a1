"""Runs plain decoding and one other mode on the same prompts, one after the other in one process, and compares them."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.bench.environment import environment
from engine.bench.suite import Prompt
from engine.errors import ContextOverflow, RequestError
from engine.events import Finished, Mode
from engine.report import answer_record
from engine.request import GenerationRequest
from engine.verdict import Verdict, compare_tokens, identity_reason

if TYPE_CHECKING:  # MLX must not be imported before load() has opened the fast BLAS
    from engine.engine import Engine

Progress = Callable[[int, int, dict[str, Any]], None]
WARM_UP_TOKENS = 16


def check_mode(engine: Engine, mode: Mode) -> None:
    """Raises ``RequestError`` where there is no draft for ``mode``."""
    if mode == "dflash" and engine.info.draft_name is None:
        raise RequestError(f"{engine.info.name} has no draft to compare with: give a pair TARGET+DRAFT, or the mode lookup.")


def run_suite(
    engine: Engine,
    prompts: Sequence[Prompt],
    max_tokens: int,
    repeat: int = 1,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
    mode: Mode = "dflash",
    exact: bool = False,
    measuring: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """{"environment", "runs", "summary"} over ``prompts``, plain decoding against ``mode``. Cancelled: the runs finished by then.

    ``exact``: DFlash uses only block lengths that give, bit for bit, what single steps give. ``measuring`` is told how far
    measuring these is; cancelled before they are known, it raises ``Cancelled``.

    With ``repeat`` above 1 the modes alternate and each mode's median run by decoding rate is kept.
    """
    check_mode(engine, mode)
    for prompt in prompts:
        _check_room(engine, prompt)
    cancel = cancel or threading.Event()
    engine.measure_exactness(cancel, measuring)
    runs: list[dict[str, Any]] = []
    for warmed in ("baseline", mode):
        _answer(engine, prompts[0], warmed, WARM_UP_TOKENS, cancel)
    for number, prompt in enumerate(prompts):
        run = run_prompt(engine, prompt, max_tokens, repeat, cancel, mode, exact)
        if run is None:
            break
        runs.append(run)
        if progress is not None:
            progress(number + 1, len(prompts), run)
    return {"environment": environment(engine.info), "runs": runs, "summary": summary(runs, mode)}


def run_prompt(
    engine: Engine,
    prompt: Prompt,
    max_tokens: int,
    repeat: int,
    cancel: threading.Event,
    mode: Mode = "dflash",
    exact: bool = False,
) -> dict[str, Any] | None:
    """One prompt plainly and in ``mode``, with the speed-up and the identity verdict; None when cancelled before its end."""
    answers: dict[Mode, list[Finished]] = {"baseline": [], mode: []}
    for _ in range(repeat):
        for turn, collected in answers.items():
            collected.append(_answer(engine, prompt, turn, max_tokens, cancel, exact))
            if cancel.is_set():
                return None
    baseline, other = (_median_run(collected) for collected in answers.values())
    verdict = compare_tokens(baseline.token_ids, other.token_ids)
    margin, limit = _margin(engine, prompt, baseline, verdict), limit_tok_s(other)
    return {
        "id": prompt.id,
        "mode": mode,
        "completion_tokens": other.statistics.completion_tokens,
        "baseline": answer_record(baseline, with_text=False),
        mode: answer_record(other, with_text=False),
        "speedup": _ratio(other.statistics.decode_tok_s, baseline.statistics.decode_tok_s),
        "identical": verdict.identical,
        "identity_reason": identity_reason(verdict, engine.info, margin),
        "first_divergence": None if margin is None else {"index": verdict.first_difference, "margin": margin},
        "limit_tok_s": limit,
        "efficiency": None if limit is None else other.statistics.decode_tok_s / limit,
    }


def _margin(engine: Engine, prompt: Prompt, baseline: Finished, verdict: Verdict) -> float | None:
    """How near a tie plain decoding was where the texts first differ; None where they do not."""
    if verdict.first_difference is None:
        return None
    return engine.top2_margin(engine.encode(prompt.messages) + list(baseline.token_ids[: verdict.first_difference]))


def limit_tok_s(answer: Finished) -> float | None:
    """The rate if a cycle were nothing but its draft and verify pass; None for an answer without a timed cycle."""
    numbers = answer.statistics
    busy = numbers.draft_s + numbers.verify_s
    return (numbers.completion_tokens - 1) / busy if busy > 0 and numbers.cycles else None


def summary(runs: Sequence[dict[str, Any]], mode: Mode = "dflash") -> dict[str, Any]:
    """Medians over the runs of plain decoding and ``mode``; None where no run has the figure."""

    def median(values: Iterator[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    result: dict[str, Any] = {
        name: median(run[name] for run in runs) for name in ("completion_tokens", "speedup", "limit_tok_s", "efficiency")
    }
    for side in ("baseline", mode):
        result[f"{side}_tok_s"] = median(run[side]["decode_tok_s"] for run in runs)
        result[f"{side}_ttft_s"] = median(run[side]["ttft_s"] for run in runs)
    result["tokens_per_cycle"] = median(run[mode]["tokens_per_cycle"] for run in runs)
    result["acceptance_rate"] = median(run[mode]["acceptance_rate"] for run in runs)
    result["slowest_speedup"] = min((run["speedup"] for run in runs if run["speedup"] is not None), default=None)
    result["runs"] = len(runs)
    result["identical_runs"] = sum(run["identical"] for run in runs)
    return result


def _check_room(engine: Engine, prompt: Prompt) -> None:
    """Finds a prompt that cannot be run before anything is measured."""
    tokens = engine.count_tokens(prompt.messages)
    if tokens >= engine.info.context_length:
        raise RequestError(f"Prompt {prompt.id!r}: {ContextOverflow(tokens, engine.info.context_length)}")


def _answer(
    engine: Engine, prompt: Prompt, mode: Mode, max_tokens: int, cancel: threading.Event, exact: bool = False
) -> Finished:
    request = GenerationRequest(prompt.messages, mode=mode, max_tokens=max_tokens, use_cache=False, exact=exact)
    for event in engine.generate(request, cancel):
        if isinstance(event, Finished):
            return event
    raise AssertionError("the engine ended without Finished")


def _median_run(answers: Sequence[Finished]) -> Finished:
    return sorted(answers, key=lambda answer: answer.statistics.decode_tok_s)[len(answers) // 2]


def _ratio(value: float, base: float) -> float | None:
    return value / base if base > 0 and value > 0 else None
