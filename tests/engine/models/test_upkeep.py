"""Checking, repairing and deleting models: only damaged files are fetched, and nothing that another model uses is lost."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from engine.errors import Cancelled, ModelError, UnknownModel
from engine.models import (
    Downloader,
    delete_model,
    import_gguf,
    installed,
    list_pairs,
    plan_download,
    plan_repair,
    resolve_pair,
    verify_model,
)
from engine.models.catalog import CatalogPair
from engine.models.hub_paths import hub_cache, repository_folder
from engine.models.paths import models_folder
from tests.engine.models.tiny_gguf import write_gguf
from tests.hub_server import HubServer
from tests.remote_models import add_model


def fetched(hub: HubServer, name: str, sizes: tuple[int, ...] = (50_000, 60_000)) -> Path:
    add_model(hub, name, sizes)
    Downloader(plan_download(name, with_draft=False)).run()
    return resolve_pair(name).target


def catalog_pair(name: str, target: str, draft: str) -> CatalogPair:
    sizes = [None] * 6
    return CatalogPair(name, name, "", "qwen3", "4-bit", target, target, draft, 16, *sizes, "MIT", False)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> list[CatalogPair]:
    """A catalog of two pairs with one target and of one apart."""
    pairs = [catalog_pair("first", "org/target", "org/draft-a"), catalog_pair("second", "org/target", "org/draft-b"),
             catalog_pair("third", "org/other", "org/draft-c")]  # fmt: skip
    for module in ("upkeep", "inventory", "planning", "pairing", "fit", "catalog"):  # the last: others are imported with it
        monkeypatch.setattr(f"engine.models.{module}.read_catalog", lambda: pairs)
    return pairs


def disk_bytes(folder: Path) -> int:
    return sum(os.lstat(os.path.join(parent, name)).st_size for parent, _, names in os.walk(folder) for name in names)


def test_a_whole_model_is_found_whole_without_asking_the_network(hub: HubServer) -> None:
    fetched(hub, "org/model")
    hub.seen.clear()
    fractions: list[float] = []
    assert verify_model("org/model", fractions.append) == [] and hub.seen == []
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_only_damaged_and_missing_files_are_named_and_fetched_again(hub: HubServer) -> None:
    folder = fetched(hub, "org/model")
    first, second = sorted(folder.glob("*.safetensors"))
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.resolve().write_bytes(content)
    second.resolve().unlink()
    (folder / "README.md").resolve().write_bytes(b"shorter")
    damaged = verify_model("org/model")
    assert sorted(damaged) == sorted(["README.md", first.name, second.name])
    plan = plan_repair("org/model")
    assert sorted(file.path for file in plan.files) == sorted(damaged)
    hub.seen.clear()
    assert Downloader(plan).run() == "done"
    assert verify_model("org/model") == []
    assert {seen.path.split("file=")[1].split("&")[0] for seen in hub.requests_for("", "store")} == {first.name, second.name}
    assert plan_repair("org/model").files == ()


def test_a_repair_keeps_to_the_commit_that_is_here(hub: HubServer) -> None:
    folder = fetched(hub, "org/model")
    (folder / "config.json").resolve().unlink()
    (model,) = installed()
    assert model.state == "incomplete" and verify_model("org/model") == ["config.json"]
    plan = plan_repair("org/model")
    assert [(file.path, file.revision) for file in plan.files] == [("config.json", folder.name)]
    assert Downloader(plan).run() == "done" and installed()[0].state == "ready"


def test_a_weight_file_that_was_never_linked_is_missed(hub: HubServer) -> None:
    folder = fetched(hub, "org/model")
    lost = sorted(folder.glob("*.safetensors"))[0]
    lost.unlink()
    assert verify_model("org/model") == [lost.name]


def test_checking_can_be_stopped(hub: HubServer) -> None:
    fetched(hub, "org/model")
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        verify_model("org/model", lambda fraction: cancel.set(), cancel)


def test_deleting_a_model_gives_back_what_it_says(hub: HubServer) -> None:
    fetched(hub, "org/other")
    before_other = disk_bytes(hub_cache())
    fetched(hub, "org/model")
    (model,) = [model for model in installed() if model.id == "org/model"]
    before = disk_bytes(hub_cache())
    freed = delete_model("org/model")
    assert freed >= model.bytes > 110_000 and freed <= before - disk_bytes(hub_cache())
    assert not repository_folder("org/model").exists()
    assert disk_bytes(hub_cache()) - before_other < 2000 and verify_model("org/other") == []
    with pytest.raises(ModelError, match="not on this machine"):
        resolve_pair("org/model")


def test_a_target_that_another_pair_needs_stays(hub: HubServer, catalog: list[CatalogPair]) -> None:
    for name in ("org/target", "org/draft-a", "org/draft-b"):
        fetched(hub, name)
    assert {entry.id: entry.state for entry in list_pairs()} == {"first": "ready", "second": "ready", "third": "not set up"}
    assert [model.used_by for model in installed() if model.id == "org/target"] == [("first", "second")]
    delete_model("first")
    assert {model.id for model in installed()} == {"org/target", "org/draft-b"}
    delete_model("second")
    assert installed() == []


@pytest.mark.parametrize("card", ["base_model: org/target", "base_model:\n- org/target\ntags: [x]"])
def test_a_draft_that_goes_with_another_conversion_here_stays(hub: HubServer, catalog: list[CatalogPair], card: str) -> None:
    for name in ("org/target", "org/draft-a"):
        fetched(hub, name)
    add_model(hub, "someone/target-6bit")
    hub.repositories["someone/target-6bit"].files["README.md"] = f"---\nlicense: mit\n{card}\n---\n# A conversion".encode()
    Downloader(plan_download("someone/target-6bit", with_draft=False)).run()
    delete_model("first")
    assert {model.id for model in installed()} == {"someone/target-6bit", "org/draft-a"}


def test_older_commits_of_a_model_go_with_it_and_share_their_files_until_then(hub: HubServer) -> None:
    fetched(hub, "org/model")
    hub.repositories["org/model"].files["README.md"] = b"another text"
    old = resolve_pair("org/model").target
    (repository_folder("org/model") / "refs/main").unlink()
    plan = plan_download("org/model", with_draft=False)
    Downloader(plan).run()
    new = resolve_pair("org/model").target
    assert new != old and (old / "config.json").resolve() == (new / "config.json").resolve()
    delete_model("org/model")
    assert not old.exists() and not new.exists()


def test_what_is_not_ours_is_left_alone(hub: HubServer, tmp_path: Path) -> None:
    mine = tmp_path / "my model"
    mine.mkdir()
    (mine / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="delete it where it was made"):
        delete_model(str(mine))
    with pytest.raises(ModelError, match="comes with the program"):
        delete_model("starter")
    with pytest.raises(UnknownModel):
        delete_model("nonsense")
    assert mine.is_dir()


def test_a_model_being_fetched_is_not_deleted(hub: HubServer) -> None:
    add_model(hub, "org/model")
    hub.bytes_per_s = 300_000
    refused: list[str] = []

    def try_to_delete(progress: object) -> None:
        if not refused:
            with pytest.raises(ModelError) as caught:
                delete_model("org/model")
            refused.append(str(caught.value))

    Downloader(plan_download("org/model", with_draft=False), on_progress=try_to_delete).run()
    assert "stop the download" in refused[0]


def test_an_imported_model_is_checked_by_its_list_and_can_be_deleted(hub: HubServer, tmp_path: Path) -> None:
    from engine.models import import_gguf
    from engine.models.paths import models_folder
    from tests.engine.models.tiny_gguf import write_gguf

    folder = import_gguf(write_gguf(tmp_path / "tiny.gguf"), models_folder() / "tiny")
    assert verify_model(str(folder)) == []
    (folder / "config.json").write_text("{}")
    assert verify_model(str(folder)) == ["config.json"]
    assert [model.source for model in installed() if model.path == folder] == ["folder"]
    assert delete_model(str(folder)) > 0 and not folder.exists()


def refuse(path: Path, *_: object) -> None:
    """A locked file on a Mac: nothing is refused to the user whom tests may run as, so the system's answer is stood in for."""
    raise PermissionError(errno.EPERM, "Operation not permitted", str(path))


def test_a_folder_that_the_system_keeps_is_named(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = import_gguf(write_gguf(tmp_path / "tiny.gguf"), models_folder() / "mine")
    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(ModelError, match=r"mine cannot be deleted \(Operation not permitted\): see whether it is locked"):
        delete_model(str(folder))


def test_a_model_of_the_hub_that_the_system_keeps_is_not_called_deleted(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(hub, "org/model")
    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(ModelError, match=r"models--org--model cannot be deleted \(files are left\): see whether it is locked"):
        delete_model("org/model")
    assert resolve_pair("org/model").target.is_dir()
