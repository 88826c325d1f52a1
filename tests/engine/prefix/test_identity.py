"""The content key: everything that kept arrays depend on changes it, a model's name and place do not."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path

import pytest

from engine.errors import Cancelled
from engine.models import manifest
from engine.prefix import identity
from engine.prefix.identity import content_key

SETTINGS = ["float32", "kv_bits=None", "64"]


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Two folders with the files of a model each, long settled."""
    folders = [tmp_path / name for name in ("target", "draft")]
    for folder in folders:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(bytes(100_000))
        for name in ("config.json", "tokenizer_config.json", "chat_template.jinja"):
            (folder / name).write_text(f"{{{name} of {folder.name}}}")
    return folders


def key(models: list[Path], settings: list[str] = SETTINGS, known: str = "hashes.json") -> str:
    return content_key(models, settings, models[0].parent / known)


@pytest.mark.parametrize("place", [0, 50_000, 99_999])
@pytest.mark.parametrize("folder", [0, 1])
def test_one_changed_weight_byte_changes_the_key_though_size_and_time_stay(models: list[Path], place: int, folder: int) -> None:
    before = key(models)
    file = models[folder] / "model.safetensors"
    status, content = file.stat(), bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert key(models) != before


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "chat_template.jinja"])
def test_every_other_file_counts(models: list[Path], name: str) -> None:
    before = key(models)
    (models[0] / name).write_text("changed")
    assert key(models) != before


def test_what_the_finder_leaves_in_a_folder_does_not_count(models: list[Path]) -> None:
    before = key(models)
    (models[0] / ".DS_Store").write_bytes(b"where its windows stood")
    assert key(models) == before


@pytest.mark.parametrize("changed", [["bfloat16", *SETTINGS[1:]], [*SETTINGS[:2], "128"], SETTINGS[:2], SETTINGS[::-1]])
def test_every_setting_counts(models: list[Path], changed: list[str]) -> None:
    assert key(models, changed) != key(models)


def test_a_missing_draft_and_exchanged_folders_count(models: list[Path]) -> None:
    assert len({key(models), key(models[:1]), key(models[::-1])}) == 3


def test_name_and_place_of_a_model_do_not_count(models: list[Path]) -> None:
    moved = [folder.with_name(f"other {folder.name}") for folder in models]
    for folder, place in zip(models, moved, strict=True):
        shutil.copytree(folder, place)
    assert key(moved) == key(models)


def test_a_file_is_hashed_again_only_after_a_change(models: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def counting(path: Path, cancel: threading.Event | None = None) -> str:
        hashed.append(path.name)
        return manifest.sha256(path, cancel)

    monkeypatch.setattr(identity, "sha256", counting)
    monkeypatch.setattr(identity, "SETTLED_S", 0.0)
    first = key(models)
    assert len(hashed) == 8
    assert key(models) == first and len(hashed) == 8
    (models[0] / "config.json").write_text("changed")
    assert key(models) != first and hashed[8:] == ["config.json"]


def test_a_hash_of_a_file_changed_just_now_is_not_trusted(models: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the clock's grain a file can change again and look the same."""
    monkeypatch.setattr(identity, "SETTLED_S", 60.0)
    key(models)
    assert not (models[0].parent / "hashes.json").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff\xfe", b'{"a": [[1], 2], "b": null}'])
def test_a_damaged_memory_of_hashes_is_made_again(
    models: list[Path], content: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(identity, "SETTLED_S", 0.0)
    (models[0].parent / "hashes.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert key(models) == key(models, known="fresh.json")
    assert "made again" in caplog.text
    assert key(models) == key(models, known="fresh.json")


def test_where_hashes_cannot_be_kept_the_key_is_the_same(models: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_S", 0.0)
    assert key(models, known="target/config.json/none") == key(models)


def test_hashing_can_be_cancelled(models: list[Path]) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        content_key(models, SETTINGS, models[0].parent / "hashes.json", cancel)
