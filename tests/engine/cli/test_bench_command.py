"""``slipstream bench`` and measuring exact block lengths, as scripts rely on them."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.decoding import exactness
from engine.decoding.exactness import probing
from engine.models.paths import cache_folder
from engine.targets.protocol import Target
from tests.engine.cli.contract import ANSWER_FIELDS, RUN_FIELDS, generate


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    lines = [{"id": "one", "prompt": "Count."}, {"id": "two \ud800", "messages": [{"role": "user", "content": "虹?"}]}]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


def test_bench_writes_environment_runs_and_summary(run, pair: str, prompts: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    code, out, err = run("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "24", "--json", str(target))
    assert (code, out) == (0, "")
    report = json.loads(target.read_text(encoding="utf-8"))
    assert list(report) == ["environment", "runs", "summary"]
    assert [run["id"] for run in report["runs"]] == ["one", "two \ud800"], "a lone surrogate is written as JSON's escape"
    for result in report["runs"]:
        assert sorted(result) == sorted(RUN_FIELDS)
        assert sorted(result["baseline"]) == sorted(result["dflash"]) == sorted(ANSWER_FIELDS)
        assert (result["identical"], result["first_divergence"], result["completion_tokens"]) == (True, None, 24)
        assert result["limit_tok_s"] > 0 and result["efficiency"] > 0
    summary = report["summary"]
    assert {"speedup", "slowest_speedup", "identical_runs", "limit_tok_s", "efficiency", "completion_tokens"} <= summary.keys()
    assert summary["identical_runs"] == summary["runs"] == 2
    assert summary["slowest_speedup"] == min(result["speedup"] for result in report["runs"])
    assert report["environment"]["pair"] == pair
    assert err.count("identical, 24 tokens") == 2 and "2 of 2 texts identical" in err


def exact_commands(pair: str, prompts: Path, report: Path) -> dict[str, tuple[str, ...]]:
    return {
        "generate": generate(pair, "--exact"),
        "bench": ("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "4", "--exact", "--json", str(report)),
        "serve": ("serve", "--model", pair, "--port", "0", "--exact"),
    }


@pytest.fixture
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize("verb", ["generate", pytest.param("bench", marks=pytest.mark.slow)])
def test_a_terminal_shows_how_far_measuring_exact_block_lengths_is(
    run, pair: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = run(*exact_commands(pair, prompts, tmp_path / "out.json")[verb])
    shares = [int(found) for found in re.findall(r"Measuring which block lengths are exact here, once (\d+)%", err)]
    assert code == 0 and len(shares) > 20 and shares == sorted(shares), err


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize("verb", ["generate", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("bench", "serve"))])
def test_ctrl_c_stops_measuring_exact_block_lengths_and_nothing_of_it_is_kept(
    run, pair: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    passes = []

    def interrupted(target: Target, widest: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        for share, left in probing(target, widest):
            passes.append(share)
            if len(passes) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield share, left

    monkeypatch.setattr(exactness, "probing", interrupted)
    code, out, err = run(*exact_commands(pair, prompts, tmp_path / "out.json")[verb])
    assert (code, out.strip(), len(passes)) == (1, "", 3) and "Traceback" not in err
    assert "ended by cancelled" in err if verb == "generate" else "was stopped" in err
    assert not (tmp_path / "out.json").exists() and not list((cache_folder() / "costs").glob("exact-widths*"))


@pytest.mark.parametrize("place", ["missing/out.json", "."])
def test_bench_refuses_a_report_it_cannot_write_before_it_loads_anything(run, prompts: Path, tmp_path: Path, place: str) -> None:
    code, out, err = run("bench", "--model", "nowhere", "--prompts", str(prompts), "--json", str(tmp_path / place))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written" in err and "give another file" in err


def test_bench_leaves_no_empty_report_and_no_harm_to_an_old_one_when_it_fails(run, prompts: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("measured yesterday")
    for file in (old, new):
        assert run("bench", "--model", "nowhere", "--prompts", str(prompts), "--json", str(file))[0] == 2
    assert old.read_text() == "measured yesterday" and not new.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_report_that_cannot_be_written_after_all_goes_to_stdout(run, pair: str, prompts: Path) -> None:
    code, out, err = run("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "4", "--json", "/dev/full")
    assert code == 1 and err.splitlines()[-1].startswith("slipstream: /dev/full cannot be written (No space left")
    assert len(json.loads(out)["runs"]) == 2


def test_bench_without_a_draft_is_code_2(run, pair: str, prompts: Path, tmp_path: Path) -> None:
    code, _, err = run("bench", "--model", pair.split("+")[0], "--prompts", str(prompts), "--json", str(tmp_path / "x"))
    assert code == 2 and "has no draft to compare with" in err.splitlines()[-1]
