"""ARahim3/mlx-dspark#28: a model that LM Studio already had was downloaded again (17 GB), and HF_HOME was ignored.

One place decides where a model lies, and the list, the plan of a download and loading all ask it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.models import Downloader, delete_model, installed, plan_download, resolve_pair
from tests.hub_server import HubServer
from tests.remote_models import add_model


@pytest.mark.parametrize("place", [".lmstudio/models", ".cache/lm-studio/models", "elsewhere/models"])
def test_a_model_in_lm_studios_folder_is_listed_planned_and_resolved_alike(hub: HubServer, place: str) -> None:
    files = add_model(hub, "org/model")
    folder = Path.home() / place / "org" / "model"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if place.startswith("elsewhere"):
        (Path.home() / ".lmstudio-home-pointer").write_text(str(Path.home() / "elsewhere"))
    (model,) = installed()
    assert (model.id, model.source, model.path, model.state) == ("org/model", "lm studio", folder, "ready")
    assert model.bytes == sum(len(data) for data in files.values())
    plan = plan_download("org/model", with_draft=False)
    assert (plan.files, plan.found) == ((), ("org/model",))
    assert resolve_pair("org/model").target == folder
    with pytest.raises(ModelError, match="LM Studio"):
        delete_model("org/model")
    assert folder.is_dir()


def test_a_model_cut_short_there_is_not_taken_for_one(hub: HubServer) -> None:
    files = add_model(hub, "org/model")
    folder = Path.home() / ".lmstudio/models/org/model"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data[:-10] if name.endswith(".safetensors") else data)
    (model,) = installed()
    assert model.state == "incomplete" and "model.safetensors" in model.problem
    plan = plan_download("org/model", with_draft=False)
    assert plan.found == () and plan.files
    Downloader(plan).run()
    assert resolve_pair("org/model").target != folder


def test_what_another_program_fetched_only_in_part_is_completed(hub: HubServer) -> None:
    """A cache that holds the weights and no tokenizer would never load, and calling it complete would leave no way out."""
    files = add_model(hub, "org/model")
    Downloader(plan_download("org/model", with_draft=False)).run()
    (resolve_pair("org/model").target / "tokenizer.json").unlink()
    (model,) = installed()
    assert model.state == "incomplete" and "tokenizer" in model.problem
    hub.seen.clear()
    plan = plan_download("org/model", with_draft=False)
    assert plan.found == () and plan.total_bytes - plan.present_bytes <= len(files["tokenizer.json"])
    Downloader(plan).run()
    assert installed()[0].state == "ready" and not hub.requests_for("", "store")


def test_hf_home_is_where_things_are_put_and_found(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "another disk"))
    add_model(hub, "org/model")
    Downloader(plan_download("org/model", with_draft=False)).run()
    assert resolve_pair("org/model").target.is_relative_to(tmp_path / "another disk" / "hub")
