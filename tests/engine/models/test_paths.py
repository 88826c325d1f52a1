"""One variable moves everything; without it the system's own folders are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models import paths


def test_one_variable_puts_everything_under_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "дом"))
    home = tmp_path / "дом"
    assert (paths.data_folder(), paths.models_folder()) == (home, home / "models")
    assert paths.cache_folder() == home / "cache"
    assert not home.exists()


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPSTREAM_HOME", "here")
    assert paths.data_folder() == tmp_path / "here"


def test_without_it_the_folders_are_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPSTREAM_HOME", raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (paths.data_folder(), paths.cache_folder()):
        assert folder.is_relative_to(tmp_path) and "Slipstream" in folder.parts


def test_the_resources_are_beside_the_code() -> None:
    assert (paths.resources_folder() / "catalog.json").is_file()
