"""The set-up scripts and the Makefile behave on machines that lack something, and repeat only what is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "cat", "pwd", "rm", "touch", "mkdir", "env", "make", "id", "uname", "tr", "find", "grep")


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with a few basic tools and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    return folder


def run(command: list[str], path: Path, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": str(path), "HOME": str(path.parent / "new home")} | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)


def find_python(path: Path, *candidates: str) -> subprocess.CompletedProcess[str]:
    return run(["sh", "packaging/find_python.sh", *candidates], path)


def test_the_first_python_new_enough_is_taken(bare: Path) -> None:
    executable(bare / "python3", "exit 1")  # too old, or a version switcher that refuses
    (bare / "python3.12").symlink_to(sys.executable)
    found = find_python(bare)
    assert (found.returncode, found.stdout.strip()) == (0, str(bare / "python3.12"))


def test_no_python_gives_one_line(bare: Path) -> None:
    found = find_python(bare)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("No Python 3.11 or newer was found.") and found.stderr.count("\n") == 1


def test_a_python_without_venv_says_what_to_install(bare: Path) -> None:
    executable(bare / "python3", 'case "$2" in *version_info*) exit 0;; esac; exit 1')
    found = find_python(bare)
    assert found.returncode == 1 and "python3-venv" in found.stderr and found.stderr.count("\n") == 1


def libraries(bare: Path, without: str, uid: int, apt: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the script on a machine made of scripts: its libraries, its user and its apt-get."""
    text = (ROOT / "packaging/system_libraries.sh").read_text().split('LIBRARIES="')[1].split('"')[0]
    names = [line.split()[0] for line in text.splitlines() if line and line.split()[0] != without]
    listing = "\n".join(f"\t{name} (libc6,x86-64) => /lib/{name}" for name in names)
    executable(bare / "ldconfig", f"[ -f {bare}/installed ] && echo '\t{without} (libc6)'; echo '{listing}'")
    for tool, reply in (("id", f"echo {uid}"), ("uname", "echo Linux"), ("Xvfb", ""), ("find", "echo /a.ttf")):
        (bare / tool).unlink(missing_ok=True)
        executable(bare / tool, reply)
    if apt is not None:
        executable(bare / "apt-get", f'echo "$@" >> {bare}/apt.log; {apt}')
    return run(["sh", "packaging/system_libraries.sh", "test"], bare)


def test_with_all_libraries_there_nothing_is_said_or_installed(bare: Path) -> None:
    done = libraries(bare, without="", uid=0, apt="exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (bare / "apt.log").exists()


def test_a_user_is_told_what_is_missing_and_how_to_get_it(bare: Path) -> None:
    done = libraries(bare, without="libxcb-cursor.so.0", uid=1000, apt="exit 1")
    assert done.returncode == 0
    assert "sudo apt-get install libxcb-cursor0" in done.stderr and done.stderr.count("\n") == 1
    assert not (bare / "apt.log").exists()


def test_root_on_debian_gets_exactly_what_is_missing(bare: Path) -> None:
    done = libraries(bare, without="libopenblas.so.0", uid=0, apt=f"touch {bare}/installed")
    assert done.returncode == 0
    log = (bare / "apt.log").read_text().splitlines()
    assert len(log) == 1 and log[0].startswith("install ") and log[0].endswith(" libopenblas0-pthread")


def test_a_failed_install_refreshes_the_lists_then_says_so(bare: Path) -> None:
    done = libraries(bare, without="libEGL.so.1", uid=0, apt="exit 100")
    assert done.returncode == 0 and "could not be installed: libegl1" in done.stderr
    assert [line.split()[0] for line in (bare / "apt.log").read_text().splitlines()] == ["install", "update", "install"]


def test_nothing_is_done_on_a_mac(bare: Path) -> None:
    (bare / "uname").unlink()
    executable(bare / "uname", "echo Darwin")
    done = run(["sh", "packaging/system_libraries.sh"], bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def checkout(bare: Path, tmp_path: Path) -> Path:
    """The Makefile alone in a folder with a space, with a Python that only notes what it is asked to do."""
    folder = tmp_path / "my checkout"
    (folder / "packaging").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "packaging/find_python.sh", folder / "packaging")
    executable(folder / "packaging/system_libraries.sh", "exit 0")
    (folder / "pyproject.toml").write_text("")
    note = f'echo "$*" >> "{folder}/log"'
    fail = f'[ -f "{folder}/fail" ] && case "$*" in *install*) exit 1;; esac'
    inside = f"#!/bin/sh\n{note}\n{fail}\nexit 0"
    make_venv = f"mkdir -p .venv/bin; printf '%s' '{inside}' > .venv/bin/python; chmod 755 .venv/bin/python"
    (bare / "chmod").symlink_to(shutil.which("chmod") or "")
    executable(bare / "python3", f'case "$*" in "-m venv .venv") {note}; {make_venv};; esac')
    return folder


def steps(checkout: Path, bare: Path, *goals: str) -> list[str]:
    """The words each step was run with, checks of the environment left out."""
    (checkout / "log").unlink(missing_ok=True)
    done = run(["make", *goals], bare, checkout)
    log = (checkout / "log").read_text().splitlines() if (checkout / "log").exists() else []
    marks = {"venv": "venv", "[dev]": "install dev", "-e .": "install", "starter": "starter", "-m app": "app"}
    marks |= {"ruff": "lint", "pytest": "pytest"}
    found = [next((name for mark, name in marks.items() if mark in line), "") for line in log]
    return [name for name in found if name] + ([] if done.returncode == 0 else ["failed"])


def test_run_sets_up_once_and_then_only_runs(checkout: Path, bare: Path) -> None:
    assert steps(checkout, bare, "run") == ["venv", "install", "starter", "app"]
    assert steps(checkout, bare, "run") == ["starter", "app"]


def test_test_installs_the_tools_and_run_needs_nothing_more(checkout: Path, bare: Path) -> None:
    assert steps(checkout, bare, "test") == ["venv", "install dev", "starter", "lint", "pytest"]
    assert steps(checkout, bare, "test") == ["starter", "lint", "pytest"]
    assert steps(checkout, bare, "run") == ["starter", "app"]


def test_an_interrupted_install_is_repeated(checkout: Path, bare: Path) -> None:
    (checkout / "fail").touch()
    assert steps(checkout, bare, "run") == ["venv", "install", "failed"]
    (checkout / "fail").unlink()
    assert steps(checkout, bare, "run") == ["install", "starter", "app"]


def test_changed_requirements_are_installed(checkout: Path, bare: Path) -> None:
    steps(checkout, bare, "run")
    later = (checkout / ".venv/.installed").stat().st_mtime + 5
    os.utime(checkout / "pyproject.toml", (later, later))
    assert steps(checkout, bare, "run") == ["install", "starter", "app"]


def test_a_moved_checkout_gets_a_new_environment(checkout: Path, bare: Path) -> None:
    steps(checkout, bare, "run")
    (checkout / ".venv/.created").write_text("/somewhere/else\n")
    assert steps(checkout, bare, "run") == ["venv", "install", "starter", "app"]


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Path, bare: Path) -> None:
    steps(checkout, bare, "run")
    (checkout / ".venv/bin/python").unlink()
    assert steps(checkout, bare, "run") == ["venv", "install", "starter", "app"]


def test_the_check_of_every_change_is_make_test(checkout: Path, bare: Path) -> None:
    shutil.copytree(ROOT / ".ci", checkout / ".ci")
    for tool in ("bash", "dirname"):
        (bare / tool).symlink_to(shutil.which(tool) or "")
    done = run([str(checkout / ".ci/run")], bare, bare.parent)
    assert done.returncode == 0, done.stderr
    assert "pytest" in (checkout / "log").read_text()
