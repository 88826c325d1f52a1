"""The short suite in every mode at 256 tokens: every text must be identical. Minutes long, so part of make test-all only."""

from __future__ import annotations

import pytest

from engine import Mode, load
from engine.bench.run import run_suite
from engine.bench.suite import short_suite
from engine.models import ResolvedPair
from engine.terminal import run_line, summary_lines


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["dflash", "lookup"])
@pytest.mark.timeout(3600)
def test_every_text_of_the_suite_is_plain_decodings(
    starter: ResolvedPair, capsys: pytest.CaptureFixture[str], mode: Mode
) -> None:
    engine = load("starter")
    prompts = short_suite()
    with capsys.disabled():
        result = run_suite(engine, prompts, 256, progress=lambda _done, _all, run: print(run_line(run), flush=True), mode=mode)
        print(*summary_lines(result), sep="\n")
    engine.close()
    assert len(result["runs"]) == len(prompts) >= 20
    assert [run["id"] for run in result["runs"] if not run["identical"]] == []
