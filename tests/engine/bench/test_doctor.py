"""``slipstream doctor`` says what is fit and what is not, in plain words, without a model, a traceback or anything private."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from engine import cli
from engine.bench import doctor, doctor_machine
from engine.models import ResolvedPair
from engine.models.paths import cache_folder, data_folder, models_folder
from tests.hub_server import HubServer

ROOT = Path(__file__).parents[3]
Check = dict[str, str]


def checks(report: dict[str, Any]) -> dict[str, Check]:
    return {check["name"]: check for check in report["checks"]}


@pytest.fixture
def examined(hub: HubServer, capsys: pytest.CaptureFixture[str]):
    """Runs the verb in this process, in empty folders, and returns the exit code and the checks by name."""

    def run(*options: str) -> tuple[int, dict[str, Check]]:
        code = cli.main(["doctor", "--json", *options])
        return code, checks(json.loads(capsys.readouterr().out))

    return run


def in_its_own_process(home: Path, *, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SLIPSTREAM_HOME": str(home), "PYTHONPATH": f"{path}:{ROOT}"}
    command = [sys.executable, "-m", "app", "doctor", "--json"]
    return subprocess.run(command, env=environment | variables, capture_output=True, text=True, timeout=120, check=False)


def test_a_fit_installation_passes(starter: ResolvedPair, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == "" and "checks: 0 failed, " in lines[-1]
    assert {line.split()[0] for line in lines[:-1]} <= {"ok", "warning", "to"}
    assert any(line.startswith("ok       starter        every file") for line in lines)


def test_every_warning_and_failure_says_what_to_do_and_nothing_else_does(examined) -> None:
    _, found = examined()
    assert {check["state"] for check in found.values()} == {"ok", "warning"}
    for check in found.values():
        assert "\n" not in check["detail"] and bool(check["action"]) == (check["state"] != "ok")
        assert not check["action"] or check["action"].endswith(".")


def test_it_leaves_nothing_behind_where_nothing_was_yet(tmp_path: Path) -> None:
    done = in_its_own_process(tmp_path / "home")
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "home").exists()
    found = checks(json.loads(done.stdout))
    assert "not made yet" in found["data folder"]["detail"] and found["starter"]["state"] == "warning"
    assert "models add starter" in found["starter"]["action"]
    assert found["BLAS"]["state"] == "ok" and "OpenBLAS" in found["BLAS"]["detail"]


@pytest.mark.parametrize(
    ("package", "module", "names"), [("mlx", "core", {"MLX", "engine"}), ("PySide6", "QtGui", {"Qt"})], ids=["MLX", "Qt"]
)
def test_a_part_that_cannot_be_imported_is_named_and_the_rest_is_still_examined(
    tmp_path: Path, package: str, module: str, names: set[str]
) -> None:
    broken = tmp_path / "broken" / package
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    (broken / "QtCore.py").touch()
    (broken / f"{module}.py").write_text("raise ImportError('libsomething.so.1: cannot open shared object file')")
    done = in_its_own_process(tmp_path / "home", path=str(broken.parent))
    assert done.returncode == 1 and done.stderr == ""
    found = checks(json.loads(done.stdout))
    failed = {name for name, check in found.items() if check["state"] == "failed"}
    assert failed == names and all("libsomething.so.1" in found[name]["detail"] for name in names)
    assert found["catalog"]["state"] == "ok" and len(found) == 22


@pytest.mark.parametrize("package", ["psutil", "filelock"])
def test_a_package_that_is_missing_does_not_keep_the_doctor_from_its_report(tmp_path: Path, package: str) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no {package}')")
    done = in_its_own_process(tmp_path / "home", path=str(tmp_path))
    assert "Traceback" not in done.stderr and done.returncode == 1
    found = checks(json.loads(done.stdout))
    failed = [check for check in found.values() if check["state"] == "failed"]
    assert failed and all(f"ImportError: no {package})" in check["detail"] for check in failed) and len(found) == 22


def test_no_value_that_could_be_private_is_told(tmp_path: Path) -> None:
    secrets = {
        "HF_TOKEN": "hf_SECRET", "HTTPS_PROXY": "http://me:SECRET@proxy:1", "HF_ENDPOINT": "http://me:SECRET@hub",
        "SLIPSTREAM_TRACE": "/SECRET", "SLIPSTREAM_API_KEY": "SECRET", "QT_QPA_PLATFORM": "offscreen", "SSL_CERT_FILE": "/SECRET",
    }  # fmt: skip
    (tmp_path / "home").mkdir()
    done = in_its_own_process(tmp_path / "home", **secrets)
    found = checks(json.loads(done.stdout))
    assert "SECRET" not in done.stdout and str(tmp_path / "home") not in done.stdout
    assert "an access token" in found["hub"]["detail"] and "a proxy for https" in found["hub"]["detail"]
    assert "SLIPSTREAM_API_KEY" in found["environment"]["detail"] and "QT_QPA_PLATFORM=offscreen" in found["environment"]["detail"]
    assert found["environment"]["state"] == "warning" and "unset SLIPSTREAM_TRACE" in found["environment"]["action"]
    assert found["certificates"]["action"] == "correct or unset SSL_CERT_FILE."


def test_a_home_folder_is_shown_without_its_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))
    assert doctor.shown(tmp_path / "anna" / "Library" / "x") == "~/Library/x"
    assert doctor.shown(tmp_path / "other") == str(tmp_path / "other")


def test_a_data_folder_that_cannot_be_written_fails_and_the_others_warn(
    examined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(blocked / "home"))
    monkeypatch.setenv("HF_HOME", str(blocked / "hub"))
    code, found = examined()
    assert code == 1 and found["data folder"]["state"] == "failed" and "SLIPSTREAM_HOME" in found["data folder"]["action"]
    assert found["cache folder"]["state"] == found["models folder"]["state"] == "warning"
    assert found["hub cache"]["state"] == "warning" and "HF_HOME" in found["hub cache"]["action"]


@pytest.mark.parametrize(
    ("number", "action"),
    [(errno.ENOSPC, "free some space on its disk, or let"), (errno.EACCES, "check its owner and rights"),
     (errno.ENOTDIR, "move the file away"), (errno.EROFS, "or let SLIPSTREAM_HOME name another folder.")],
)  # fmt: skip
def test_a_folder_that_cannot_be_written_is_told_of_with_what_helps(
    examined, monkeypatch: pytest.MonkeyPatch, number: int, action: str
) -> None:
    def refuse(**_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert action in examined()[1]["data folder"]["action"]


def test_a_folder_that_is_closed_to_the_user_is_named_and_not_taken_for_a_broken_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, examined
) -> None:
    """The tests may run as root, whom no rights stop: so the system's refusal is put in its place."""
    closed, real = tmp_path / "anna" / "closed", Path.stat
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(closed))

    def stat(path: Path, **options: Any) -> os.stat_result:
        if path.is_relative_to(closed) and path != closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, **options)

    closed.mkdir(parents=True)
    monkeypatch.setattr(Path, "stat", stat)
    code, found = examined()
    wrong = {name: check for name, check in found.items() if check["state"] == "failed"}
    assert code == 1 and "starter" in wrong
    for check in wrong.values():
        assert "~/closed" in check["detail"] and "rights" in check["action"] and "install" not in check["action"], check
    assert found["models folder"]["state"] == "warning" and "rights" in found["models folder"]["action"]


def test_a_name_in_a_command_is_quoted_as_a_shell_needs_it() -> None:
    assert [doctor.typed(text) for text in ("~/a/b", "~/My Models/x", "/My Models/x", "org/name")] == [
        "~/a/b", "~/'My Models/x'", "'/My Models/x'", "org/name",
    ]  # fmt: skip


def test_a_damaged_starter_fails_by_its_hash_with_the_command_that_mends_it(starter: ResolvedPair, examined) -> None:
    copy = models_folder() / "starter" / "target"
    shutil.copytree(starter.target, copy)
    assert examined()[1]["starter"] == {"name": "starter", "state": "ok", "detail": "every file is as it should be", "action": ""}
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    code, found = examined()
    assert code == 1 and found["starter"]["state"] == "failed" and "model.safetensors is damaged" in found["starter"]["detail"]
    assert found["starter"]["action"] == "run `slipstream models add starter`."
    assert found["models"]["state"] == "ok", "it has a line of its own"


def test_kept_measurements_and_models_that_cannot_be_read_are_warned_of(examined) -> None:
    costs, model = cache_folder() / "costs", models_folder() / "mine"
    costs.mkdir(parents=True)
    (costs / "costs-1.json").write_text("{}")
    (costs / "exact-widths-2.json").write_text('{"widths": []}')
    (costs / "chunk-3.json").write_text("[" * 5000)
    (cache_folder() / "prefix").mkdir()
    (cache_folder() / "prefix" / "x").write_bytes(bytes(12_000_000))
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    code, found = examined()
    assert code == 0 and found["measurements"]["detail"] == "costs: 1, exact-widths: 1; 1 cannot be read"
    assert found["prefix cache"]["detail"] == "12 MB on disk"
    assert found["models"]["state"] == "warning" and "1 cannot be used" in found["models"]["detail"]


def test_the_hub_is_asked_only_when_told_to(examined, hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not asked" in examined()[1]["hub"]["detail"] and not hub.requests_for("api")
    assert examined("--network")[1]["hub"]["detail"].endswith("it answers") and len(hub.requests_for("api")) == 1
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert examined("--network")[1]["hub"]["action"].startswith("unset HF_HUB_OFFLINE")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("engine.models.hub_client.FIRST_WAIT_S", 0.01)
    code, found = examined("--network")
    assert code == 0 and found["hub"]["state"] == "warning" and found["hub"]["action"] == "check the network and try again."


def test_packages_of_other_versions_than_required_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["mlx-lm==0.0.1", "psutil>=1", "nothing-such>=2", 'absent; extra == "dev"', 'absent; sys_platform == "nowhere"']
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    verdict = doctor_machine.packages()
    assert verdict.state == "warning" and "psutil" not in verdict.detail and "absent" not in verdict.detail
    assert f"mlx-lm==0.0.1 (here {metadata.version('mlx-lm')})" in verdict.detail
    assert "nothing-such>=2 (here missing)" in verdict.detail


@pytest.mark.parametrize(
    ("machine", "release", "state", "words"),
    [("arm64", "15.1", "ok", "macOS 15.1"), ("arm64", "13.6", "failed", "too old"), ("x86_64", "15.1", "failed", "Apple Silicon")],
)
def test_a_mac_that_cannot_run_models_is_told_so(
    monkeypatch: pytest.MonkeyPatch, machine: str, release: str, state: str, words: str
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.mac_ver", lambda: (release, ("", "", ""), machine))
    verdict = doctor_machine.system()
    assert verdict.state == state and words in verdict.detail


def test_more_blas_threads_than_cores_and_the_slow_blas_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kernels.blas.use_fast_blas", lambda: True)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4096")
    assert doctor_machine.blas().state == "warning" and "OPENBLAS_NUM_THREADS" in doctor_machine.blas().action
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert doctor_machine.blas().state == "ok"
    monkeypatch.setattr("engine.kernels.blas.use_fast_blas", lambda: False)
    assert doctor_machine.blas().state == "warning" and "libopenblas0-pthread" in doctor_machine.blas().action


def test_an_examination_that_breaks_is_reported_and_does_not_stop_the_rest() -> None:
    def breaks() -> doctor.Verdict:
        raise RuntimeError("first line\nsecond line")

    told: list[Check] = []
    report = doctor.examine([("mine", breaks), ("last", lambda: doctor.ok("fine"))], tell=told.append)
    assert not report["ok"] and told == report["checks"] and told[-1]["detail"] == "fine"
    assert told[-2]["detail"] == "could not be examined (RuntimeError: first line)"
    assert data_folder() is not None


def test_a_part_that_only_the_server_needs_is_missed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("engine.server.run")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # its import then fails
    verdict = doctor_machine.engine_imports()
    assert verdict.state == "failed" and "uvicorn" in verdict.detail
