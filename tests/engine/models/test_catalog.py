"""Pairs are found by catalog id, by folder and in the local hub cache; what is missing comes with the way to get it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import ModelError, UnknownModel
from engine.models import ResolvedPair, list_pairs, resolve_pair
from engine.models.catalog import CatalogPair, read_catalog
from engine.models.hub_paths import is_repository
from engine.targets.families import supported_families
from tests.remote_models import safetensors


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def with_weights(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(safetensors(10))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def fetched(hub: Path, repository: str) -> Path:
    """A repository as the hub's own client leaves it in its cache."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    root = hub / ("models--" + repository.replace("/", "--"))
    (root / "refs").mkdir(parents=True)
    (root / "refs/main").write_text(commit)
    return with_weights(model(root / "snapshots" / commit))


@pytest.mark.parametrize("name", ["plain", "модель и пробел", "模型", "a+b", "a+", "emoji 🙂"])
@pytest.mark.parametrize("draft", ["draft", "черновик+1", "+草稿"])
def test_folders_are_found_whatever_their_names(tmp_path: Path, name: str, draft: str) -> None:
    target_folder, draft_folder = model(tmp_path / name), model(tmp_path / "drafts" / draft)
    text = f"{target_folder}+{draft_folder}"
    assert resolve_pair(text) == ResolvedPair(text, name, target_folder, draft_folder)
    assert resolve_pair(str(target_folder)) == ResolvedPair(str(target_folder), name, target_folder, None)


def test_a_folder_whose_name_begins_another_does_not_take_its_place(tmp_path: Path) -> None:
    model(tmp_path / "a")
    longer, draft = model(tmp_path / "a+b"), model(tmp_path / "d")
    assert resolve_pair(f"{longer}+{draft}").target == longer


def test_relative_folders_and_the_home_sign_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_pair("m").target == resolve_pair("~/m").target == folder


def test_hub_ids_are_found_in_the_local_cache(cache: Path, tmp_path: Path) -> None:
    target, draft = fetched(cache, "org/Model-1.5B"), fetched(cache, "z-lab/Model-DFlash")
    pair = resolve_pair("org/Model-1.5B+z-lab/Model-DFlash")
    assert (pair.name, pair.target, pair.draft) == ("org/Model-1.5B", target, draft)
    local = model(tmp_path / "my+draft")
    assert resolve_pair(f"org/Model-1.5B+{local}").draft == local


def test_a_hub_id_not_fetched_names_the_command(cache: Path) -> None:
    fetched(cache, "org/target")
    with pytest.raises(ModelError) as info:
        resolve_pair("org/target+org/draft")
    assert str(info.value) == "org/draft is not on this machine: fetch it with `slipstream models add org/draft`."


def test_a_pair_of_the_catalog_not_fetched_names_the_command_for_all_of_it(cache: Path) -> None:
    pair = next(pair for pair in read_catalog() if pair.draft and pair.id != "starter")
    with pytest.raises(ModelError, match=f"models add {pair.id}`"):
        resolve_pair(pair.id)
    fetched(cache, pair.target)
    with pytest.raises(ModelError, match=f"^{pair.draft} is not on this machine: fetch it with `slipstream models add {pair.id}`"):
        resolve_pair(pair.id)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "No model was named"),
        ("   ", "No model was named"),
        ("nonsense", "neither a model folder nor a hub id"),
        ("/no/such/folder", "neither a model folder nor a hub id"),
        ("org/model+", "One side of the [+] is empty"),
        ("+org/model", "One side of the [+] is empty"),
        ("x" * 5000, "neither a model folder nor a hub id"),
        ("nul\0byte", "neither a model folder nor a hub id"),
        ("\udcff", "neither a model folder nor a hub id"),
    ],
)
def test_words_that_name_no_model_are_refused_in_one_line(cache: Path, text: str, words: str) -> None:
    with pytest.raises(UnknownModel, match=words) as info:
        resolve_pair(text)
    assert "\n" not in str(info.value)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        resolve_pair(str(tmp_path))


def test_the_starter_is_listed_and_resolved(starter: ResolvedPair) -> None:
    entry = list_pairs()[0]
    assert (entry.id, entry.name, entry.state) == ("starter", starter.name, "ready")
    assert resolve_pair("starter") == starter
    catalog = read_catalog()[0]
    assert abs(entry.size_bytes - catalog.disk_bytes) < 0.02 * catalog.disk_bytes


def test_a_catalog_id_stands_for_its_target_before_another_draft(starter: ResolvedPair, tmp_path: Path) -> None:
    draft = model(tmp_path / "my+draft")
    pair = resolve_pair(f"starter+{draft}")
    assert (pair.name, pair.target, pair.draft, pair.block_length) == (starter.name, starter.target, draft, None)
    with pytest.raises(UnknownModel, match=r"^no-draft is neither"):
        resolve_pair("starter+no-draft")


def test_a_starter_not_set_up_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "new"))
    assert (list_pairs()[0].state, list_pairs()[0].size_bytes) == ("not set up", 0)
    with pytest.raises(ModelError, match=r"python -m engine\.models\.starter"):
        resolve_pair("starter")


def test_the_catalog_can_hold_pairs_of_the_hub(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = CatalogPair("big", "Big", "Larger.", "qwen3", "4-bit", "org/base", "org/target", "org/draft", 16, 10, 20, 20, 1, 0, 4096,
                       "Apache-2.0", False)  # fmt: skip
    fields = {name: getattr(pair, name) for name in CatalogPair.__slots__}
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps({"format": 2, "pairs": [fields]}))
    assert read_catalog(path) == [pair]
    monkeypatch.setattr("engine.models.catalog.read_catalog", lambda: [pair])
    assert list_pairs()[0].state == "not set up"
    target = fetched(cache, "org/target")
    assert list_pairs()[0].state == "incomplete"
    draft = fetched(cache, "org/draft")
    size = sum(file.stat().st_size for folder in (target, draft) for file in folder.iterdir())
    assert (list_pairs()[0].state, list_pairs()[0].size_bytes) == ("ready", size)
    assert resolve_pair("big") == ResolvedPair("big", "Big", target, draft, 16)


@pytest.mark.parametrize("content", ["", "{}", '{"format": 2, "pairs": [{"id": "x"}]}', '{"format": 1, "pairs": []}', "[]"])
def test_a_damaged_catalog_gives_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "catalog.json"
    path.write_text(content)
    with pytest.raises(ModelError) as info:
        read_catalog(path)
    assert "\n" not in str(info.value) and str(path) in str(info.value)


def test_every_line_of_the_shipped_catalog_is_of_a_family_that_runs_here_and_complete() -> None:
    pairs = read_catalog()
    assert pairs[0].id == "starter" and len(pairs) > 20
    assert len({pair.id for pair in pairs}) == len({(pair.target, pair.draft) for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.family in supported_families(), pair.id
        assert re.fullmatch(r"[a-z0-9.-]+", pair.id) and pair.name and pair.description.endswith("."), pair.id
        assert pair.licence and pair.precision and is_repository(pair.base), pair.id
        assert pair.weights_bytes and pair.per_token_bytes and pair.context_length and pair.state_bytes is not None, pair.id
        if pair.id != "starter":
            assert is_repository(pair.target) and pair.draft is not None and is_repository(pair.draft), pair.id
            assert pair.weights_bytes > 1e9 and pair.download_bytes is None, "the hub's own numbers count"


def test_listing_the_models_imports_nothing_heavy() -> None:
    code = (
        "import sys; from engine.models import list_pairs; list_pairs()\n"
        "print([name for name in ('mlx', 'numpy', 'gguf', 'tokenizers', 'huggingface_hub') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
