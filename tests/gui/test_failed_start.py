"""Starts that fail, and commands that are none: one clear line each, and an end in order."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.__main__ import VERBS, parse
from app.main import Options, data_folder
from app.services.crashlog import LOG
from app.services.instance import SingleInstance
from app.services.wiring import CHATS


def run_app(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **environment},
    )  # fmt: skip


def test_a_data_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run_app("--data", str(tmp_path / "file" / "data"))
    assert done.returncode == 1 and "choose another with --data" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_chat_file_that_cannot_be_opened_is_one_clear_line(tmp_path):
    (tmp_path / CHATS).mkdir()
    done = run_app("--data", str(tmp_path))
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def test_a_log_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / LOG).mkdir()
    done = run_app("--data", str(tmp_path), LC_ALL="C.UTF-8")
    assert done.returncode == 1 and "make it writable" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_fails_after_the_engine_s_thread_began_ends_in_order_too(tmp_path):
    done = run_app("--data", str(tmp_path), SLIPSTREAM_TRACE=str(tmp_path / "gone" / "trace"), LC_ALL="C.UTF-8")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_what_fails_once_the_window_is_there_ends_in_order_too(tmp_path):
    script = """
import sys
from pathlib import Path
import app.main as main
from app.ui.tour import Tour
from tests.scripted import Script, ScriptedLoader
Tour.start_once = lambda _tour: 1 / 0
main.run(main.Options(pair="scripted", data=Path(sys.argv[1])), ScriptedLoader(Script()))
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})  # fmt: skip
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "QThread" not in done.stderr


def test_a_folder_that_cannot_be_written_is_not_taken_for_a_second_start(qtbot, tmp_path):
    with pytest.raises(OSError, match="gone"):
        SingleInstance(tmp_path / "gone").acquire()


def test_wrong_options_are_told_in_one_line_before_qt_is_loaded(capsys):
    before = {name for name in sys.modules if name.startswith("PySide6")}
    with pytest.raises(SystemExit) as ended:
        parse(["--nonsense"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1
    assert {name for name in sys.modules if name.startswith("PySide6")} == before


def test_a_verb_runs_without_qt():
    script = "import sys; import app.__main__ as m; m.main(['models', 'list']); sys.exit('PySide6' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "starter" in done.stdout


def test_only_commands_that_exist_are_offered():
    done = run_app("--help")
    assert done.returncode == 0 and f"{', '.join(VERBS)}." in " ".join(done.stdout.split())
    for verb in VERBS:
        assert run_app(verb, "--help").returncode == 0, verb


def test_an_unknown_command_is_one_line_that_names_the_known_ones():
    done = run_app("nonsense")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and "'nonsense'" in done.stderr
    assert all(verb in done.stderr for verb in VERBS)


def test_the_data_folder_is_the_users_choice_first(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    assert data_folder(Options(data=tmp_path / "mine")) == tmp_path / "mine"
    assert data_folder(Options()) == tmp_path / "home" and (tmp_path / "home").is_dir()
