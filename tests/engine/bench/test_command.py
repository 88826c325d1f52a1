"""What ``bench`` compares and on which prompts, as the command line says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import RequestError, cli
from engine.bench.suite import Prompt, read_suite, short_suite


def test_lookup_is_compared_where_there_is_no_draft(tiny_pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "out.json"
    prompts.write_text('{"id": "one", "prompt": "Count to ten."}\n{"id": "two", "prompt": "1 2 3 4 1 2 3 4 1 2 3 4"}\n')
    target = tiny_pair.split("+")[0]
    command = ["bench", "--model", target, "--prompts", str(prompts), "--max-tokens", "4", "--mode", "lookup", "--json", str(out)]
    assert cli.main(command) == 0 and "lookup" in capsys.readouterr().err
    report = json.loads(out.read_text())
    assert [(run["mode"], run["lookup"]["mode"], run["identical"]) for run in report["runs"]] == [("lookup", "lookup", True)] * 2
    assert report["summary"]["lookup_tok_s"] > 0


@pytest.mark.parametrize(("more", "suite"), [([], short_suite()), (["--suite", "full"], read_suite())], ids=["short", "full"])
def test_the_short_suite_is_the_default(
    tiny_pair: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], suite: list[Prompt]
) -> None:
    asked: list[Prompt] = []

    def note(_engine: object, chosen: list[Prompt], *_rest: object) -> dict:
        asked.extend(chosen)
        raise RequestError("enough")

    monkeypatch.setattr("engine.terminal.run_suite", note)
    assert cli.main(["bench", "--model", tiny_pair, "--json", str(tmp_path / "out.json"), *more]) == 2
    assert asked == suite


def test_a_comparison_that_cannot_be_made_is_refused_before_anything_is_printed(
    tiny_pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "--model", tiny_pair.split("+")[0], "--json", str(tmp_path / "out.json")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("has no draft to compare with: give a pair TARGET+DRAFT, or the mode lookup.")
