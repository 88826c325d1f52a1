"""The whole suite in both modes at 256 tokens: every text must be identical. Minutes long, so part of make test-all only."""

from __future__ import annotations

import pytest

from engine import load
from engine.bench.run import run_suite
from engine.bench.suite import read_suite
from engine.models import ResolvedPair
from engine.terminal import run_line, summary_lines


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_text_of_the_suite_is_identical_in_both_modes(starter: ResolvedPair, capsys: pytest.CaptureFixture[str]) -> None:
    engine = load("starter")
    prompts = read_suite()
    with capsys.disabled():
        result = run_suite(engine, prompts, 256, progress=lambda _done, _all, run: print(run_line(run), flush=True))
        print(*summary_lines(result), sep="\n")
    engine.close()
    assert len(result["runs"]) == len(prompts) >= 20
    assert [run["id"] for run in result["runs"] if not run["identical"]] == []
