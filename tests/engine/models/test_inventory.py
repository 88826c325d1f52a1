"""What is on this machine is listed with where it came from, whether it runs, and why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models import Downloader, ResolvedPair, import_gguf, installed, list_pairs, plan_download
from engine.models.inventory import gguf_architecture, size_on_disk
from engine.models.paths import models_folder
from tests.engine.models.tiny_gguf import write_gguf
from tests.hub_server import HubServer
from tests.remote_models import add_model

DRAFT = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "dflash_config": {}}


def test_everything_found_is_listed_largest_first(hub: HubServer, tmp_path: Path) -> None:
    add_model(hub, "org/large", (300_000,))
    add_model(hub, "labs/large-DFlash", (250_000,), config=DRAFT)
    Downloader(plan_download("org/large+labs/large-DFlash")).run()
    import_gguf(write_gguf(tmp_path / "tiny.gguf"), models_folder() / "мой")
    found = [(model.id, model.source, model.is_draft, model.family, model.state) for model in installed()]
    assert found[:2] == [
        ("org/large", "hub cache", False, "qwen3", "ready"),
        ("labs/large-DFlash", "hub cache", True, "qwen3", "ready"),
    ]
    assert [(path, *rest) for path, *rest in found[2:]] == [(str(models_folder() / "мой"), "folder", False, "llama", "ready")]
    assert all(0 <= model.bytes - sum(file.stat().st_size for file in model.path.iterdir()) < 100 for model in installed())


@pytest.mark.parametrize(("architecture", "state", "words"), [
    ("llama", "importable", "has to be imported"), ("gemma3", "unsupported", "architecture gemma3; only llama"),
])  # fmt: skip
def test_a_gguf_of_lm_studio_is_told_from_what_runs(hub: HubServer, architecture: str, state: str, words: str) -> None:
    folder = Path.home() / ".lmstudio/models/org/some-GGUF"
    folder.mkdir(parents=True)
    write_gguf(folder / "some-Q4_1.gguf", architecture=architecture)
    (folder / "mmproj-some.gguf").write_bytes(b"GGUF")
    (model,) = installed()
    assert (model.source, model.state, model.family) == ("lm studio", state, architecture) and words in model.problem


@pytest.mark.parametrize("content", [b"", b"GGUF", b"another kind", b"GGUF" + b"\xff" * 200], ids=["empty", "cut", "other", "wild"])
def test_a_file_that_only_looks_like_a_gguf_has_no_architecture(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    assert gguf_architecture(tmp_path / "x.gguf") == ""


def test_other_things_in_the_hub_cache_are_not_models(hub: HubServer) -> None:
    from engine.models.hub_paths import hub_cache

    snapshot = hub_cache() / "models--org--tokenizer-only" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "tokenizer.json").write_text("{}")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs/main").write_text("abc")
    (hub_cache() / "datasets--org--data").mkdir()
    assert installed() == []


def test_the_starter_is_listed_with_its_draft_s_size(starter: ResolvedPair) -> None:
    (listed,) = [model for model in installed() if model.id == "starter"]
    (pair,) = [pair for pair in list_pairs() if pair.id == "starter"]
    assert starter.draft is not None and size_on_disk(starter.draft) > 1_000_000
    assert listed.bytes == pair.size_bytes == size_on_disk(starter.target) + size_on_disk(starter.draft)
