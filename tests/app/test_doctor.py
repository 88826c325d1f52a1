"""What the doctor says of the program around the engine: Qt's plugin, the display, a hidden copy of the app, the last crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app import doctor
from app.services.crashlog import CrashLog
from engine.bench.doctor import Verdict


def verdict(name: str) -> Verdict:
    return dict(doctor.examinations())[name]()


def test_a_crash_is_pointed_to_until_a_run_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    assert verdict("crash log") == Verdict("ok", "no run has ended in a fault")
    (tmp_path / "crash.log").write_text("uncaught error\nValueError: words of a chat\n")
    found = verdict("crash log")
    assert found.state == "warning" and str(tmp_path / "crash.log") in found.action and "words" not in found.detail + found.action
    CrashLog(tmp_path).close()  # the next start, which ends well
    found = verdict("crash log")
    assert found.state == "ok" and "crash-previous.log" in found.detail


@pytest.mark.parametrize(("platform", "state"), [("offscreen", "ok"), ("", "warning"), ("nonsense", "failed")])
def test_the_display_is_judged_without_opening_it(monkeypatch: pytest.MonkeyPatch, platform: str, state: str) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert verdict("display").state == state


def test_a_plugin_that_lacks_a_library_is_reported_instead_of_ending_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "libqoffscreen.so").write_bytes(b"no library")
    monkeypatch.setattr("PySide6.QtCore.QLibraryInfo.path", lambda _which: str(tmp_path))
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    found = verdict("display")
    assert found.state == "failed" and "libqoffscreen.so" in found.detail and "Qt needs" in found.action


def test_a_hidden_copy_of_the_app_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict("program").detail == "runs from its source"
    for place, state in (("/private/var/AppTranslocation/1/d/Slipstream.app", "warning"), ("/Applications/Slipstream.app", "ok")):
        monkeypatch.setattr(doctor, "bundle", lambda place=place: Path(place))
        assert verdict("program").state == state


def test_a_prompt_that_names_a_verb_is_only_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    from app import __main__ as entry

    given = []
    monkeypatch.setattr("engine.cli.main", lambda *arguments: given.append(arguments) or 0)
    for word in ("doctor", "selftest"):
        assert entry.main(["generate", "--model", "starter", "--prompt", word]) == 0
    assert [len(arguments) for arguments in given] == [1, 1] and os.environ["TOKENIZERS_PARALLELISM"]
