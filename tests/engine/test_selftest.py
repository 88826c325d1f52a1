"""The self-test passes here on the real starter pair, and says in plain words what fails where something is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import cli, selftest
from engine.engine import Engine
from engine.models import ResolvedPair

CHECKS = [
    "data folder is writable", "starter pair loads", "plain decoding answers", "DFlash answers", "both texts are identical",
    "the server answers",
]  # fmt: skip


@pytest.fixture(autouse=True)
def short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks are the same with fewer tokens, and quicker."""
    monkeypatch.setattr(selftest, "MAX_TOKENS", 12)


def test_this_installation_passes(starter: ResolvedPair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["selftest", "--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert (list(report), report["ok"]) == (["ok", "checks"], True)
    assert [check["name"] for check in report["checks"]] == CHECKS
    assert all(sorted(check) == ["detail", "name", "ok", "seconds"] and check["ok"] for check in report["checks"])
    assert report["checks"][4]["detail"] == "12 tokens compared"
    out, err = capsys.readouterr()
    assert [line[:4] for line in out.splitlines()] == ["ok  "] * 6 and err == ""


@pytest.fixture
def unusable_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that can be neither written nor made, because a file stands in its place."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(blocked / "home"))
    return blocked / "home"


def test_a_broken_installation_fails_every_check_in_plain_words(
    unusable_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["selftest", "--json", str(tmp_path / "report.json")]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["ok"] and [check["ok"] for check in report["checks"]] == [False] * 6
    details = [check["detail"] for check in report["checks"]]
    assert "Not a directory" in details[0] and "cannot be written" in details[1]
    not_loaded = "not run, because the pair did not load"
    assert details[2:] == [not_loaded, not_loaded, "not run, because there are no two texts", not_loaded]
    assert capsys.readouterr().out.count("FAIL ") == 6


def test_a_report_that_cannot_be_written_is_refused_before_the_checks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["selftest", "--json", str(tmp_path / "missing" / "report.json")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "cannot be written" in err


def test_texts_that_differ_fail_their_check_alone(starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    real = selftest.compare_tokens
    monkeypatch.setattr(selftest, "compare_tokens", lambda plain, other: real(plain, (*other[:3], -1, *other[4:])))
    report = selftest.run_selftest()
    assert [check["ok"] for check in report["checks"]] == [True] * 4 + [False, True]
    assert report["checks"][4]["detail"].startswith("the texts differ from token 3, at a margin of ")


def test_texts_that_differ_at_a_near_tie_pass_and_say_so(starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU passes of 16-bit numbers round by their width: that is no fault of the installation."""
    real = selftest.compare_tokens
    monkeypatch.setattr(selftest, "compare_tokens", lambda plain, other: real(plain, (*other[:3], -1, *other[4:])))
    monkeypatch.setattr(Engine, "top2_margin", lambda engine, ids: 0.009)
    report = selftest.run_selftest()
    assert report["ok"] and report["checks"][4]["detail"] == "near-tie: margin 0.009 at token 3"
