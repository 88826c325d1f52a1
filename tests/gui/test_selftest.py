"""The self-test's checks of the program hold here, and each notices what it is there for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app import __main__ as entry
from app import selftest


def check(checks: list[selftest.Check], name: str) -> str:
    return dict(checks)[name]()


def test_the_window_is_shown_and_chats_and_cache_are_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    assert "1080 by 740" in check(selftest.before(), "window is shown")
    assert check(selftest.before(), "chats can be kept outside the bundle") == str(tmp_path)
    assert check(selftest.before(), "cache folder is writable outside the bundle") == str(tmp_path / "cache")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"], "the self-test leaves nothing behind"


def test_data_inside_the_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tmp_path / "Slipstream.app"
    monkeypatch.setattr(selftest, "resources_folder", lambda: app / "Contents" / "Resources" / "app" / "resources")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(app / "Contents"))
    for name in ("chats can be kept outside the bundle", "cache folder is writable outside the bundle"):
        with pytest.raises(selftest.CheckFailed, match="inside the bundle"):
            check(selftest.before(), name)


@pytest.mark.parametrize("change", ["new", "changed", "gone"])
def test_whatever_is_written_into_the_bundle_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    resources = tmp_path / "Slipstream.app" / "Contents" / "Resources" / "app" / "resources"
    resources.mkdir(parents=True)
    (resources / "old").write_text("1")
    monkeypatch.setattr(selftest, "resources_folder", lambda: resources)
    checks = selftest.after()
    assert check(checks, "nothing is written into the bundle").startswith("1 files")
    if change == "gone":
        (resources / "old").unlink()
    else:
        (resources / ("old" if change == "changed" else "__pycache__")).write_text("22")
    with pytest.raises(selftest.CheckFailed, match="changed in"):
        check(checks, "nothing is written into the bundle")


def test_a_second_process_is_noticed() -> None:
    assert check(selftest.after(), "no second process").startswith("one process")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with pytest.raises(selftest.CheckFailed, match="started"):
            check(selftest.after(), "no second process")
        other.communicate(b"\n")


def test_the_program_s_selftest_does_its_checks_around_the_engine_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way: the engine's checks end at once")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(blocked / "home"))
    assert entry.main(["selftest", "--json", str(tmp_path / "report.json")]) == 1
    checks = json.loads((tmp_path / "report.json").read_text())["checks"]
    names = [check["name"] for check in checks]
    assert names[0] == "window is shown" and names[-1] == "nothing is written into the bundle"
    assert "starter pair loads" in names and names.index("no second process") > names.index("both texts are identical")
    assert {check["name"] for check in checks if check["ok"]} >= {"window is shown", "no second process"}


def test_a_device_can_be_chosen_and_the_cpu_calls_no_compiler() -> None:
    code = (
        "import engine, engine.selftest as s, mlx.core as mx; s._use_device('cpu'); "
        "mx.disable_compile = lambda: print('again'); s._use_device('cpu'); print(mx.default_device())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["again", "Device(cpu, 0)"]


def test_a_library_for_documents_that_is_missing_is_noticed(monkeypatch):
    assert check(selftest.before(), "documents can be read") == "PDF, Word, RTF"
    monkeypatch.setitem(sys.modules, "mammoth", None)
    with pytest.raises(ImportError, match="mammoth"):
        check(selftest.before(), "documents can be read")
