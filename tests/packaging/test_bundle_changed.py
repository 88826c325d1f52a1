"""The bundle is checked where its inputs changed since the branch point, and wherever git cannot tell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> None:
    settings = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.example",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "protocol.file.allow=always",
    ]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)


def needs_check(folder: Path) -> tuple[bool, str]:
    done = subprocess.run(["sh", "packaging/bundle_changed.sh"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    return done.returncode == 0, done.stderr


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    (folder / "packaging").mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "bundle_changed.sh", folder / "packaging")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "one")
    commit(folder, "two")
    return folder


@pytest.fixture
def branch(origin: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    git(folder, "switch", "-qc", "work")
    return folder


@pytest.mark.parametrize(
    ("name", "checked"),
    [("engine/engine.py", False), ("README.md", False), ("packaging/bundle/lint.py", True), ("pyproject.toml", True),
     ("resources/icons/app.svg", True), (".github/workflows/release.yml", True), ("app/launch.py", True)],
)  # fmt: skip
def test_a_branch_is_checked_where_it_touches_the_bundle(branch: Path, name: str, checked: bool) -> None:
    commit(branch, name)
    needed, said = needs_check(branch)
    assert needed is checked and (name in said) is checked


def test_changes_that_main_made_meanwhile_do_not_count(origin: Path, branch: Path) -> None:
    commit(branch, "engine/engine.py")
    commit(origin, "packaging/bundle/lint.py")
    git(branch, "fetch", "-q")
    assert not needs_check(branch)[0]


def test_main_itself_a_shallow_clone_and_no_repository_are_checked(origin: Path, branch: Path, tmp_path: Path) -> None:
    assert needs_check(origin)[0], "no origin to compare with"
    git(branch, "switch", "-q", "main")
    assert needs_check(branch)[0], "the branch point is the commit itself"
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin}", str(shallow))
    assert needs_check(shallow)[0]
    shutil.rmtree(shallow / ".git")
    assert needs_check(shallow)[0]
