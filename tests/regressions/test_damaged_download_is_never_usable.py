"""janhq/jan#3727: a download that had failed was offered for use."""

from __future__ import annotations

import pytest

from engine.errors import ModelError
from engine.models import Downloader, DownloadPlan, DownloadProblem, hub_paths, installed, resolve_pair
from tests.hub_server import Fault, HubServer


def test_a_model_is_usable_only_once_every_file_has_its_size_and_hash(hub: HubServer, remote_model: DownloadPlan) -> None:
    hub.fail("org/model/model.safetensors", Fault("corrupt"), Fault("corrupt"))
    with pytest.raises(DownloadProblem) as caught:
        Downloader(remote_model).run()
    assert caught.value.kind == "hash"
    assert hub_paths.current_snapshot("org/model") is None
    assert "org/model" not in [model.id for model in installed()]
    with pytest.raises(ModelError, match="not on this machine"):
        resolve_pair("org/model")
    assert Downloader(remote_model).run() == "done"
    assert resolve_pair("org/model").target.joinpath("model.safetensors").is_file()


def test_a_small_file_that_arrives_damaged_is_noticed_too(hub: HubServer, remote_model: DownloadPlan) -> None:
    hub.fail("org/model/config.json", Fault("corrupt"))
    assert Downloader(remote_model).run() == "done"
    written = resolve_pair("org/model").target / "config.json"
    assert written.read_bytes() == hub.repositories["org/model"].files["config.json"]
