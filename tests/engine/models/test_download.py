"""Downloads from a hub on this machine: everything arrives whole, whatever the connection does."""

from __future__ import annotations

from engine.models import Downloader, Progress, list_downloads, plan_download, resolve_pair
from tests.hub_server import HubServer
from tests.remote_models import add_model


def test_a_model_of_the_hub_arrives_and_can_be_resolved(hub: HubServer) -> None:
    files = add_model(hub, "org/model")
    plan = plan_download("org/model")
    assert plan.no_draft_reason is not None and plan.total_bytes == sum(len(data) for data in files.values())
    seen: list[Progress] = []
    assert Downloader(plan, on_progress=seen.append).run() == "done"
    folder = resolve_pair("org/model").target
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert (seen[-1].done, seen[-1].total) == (plan.total_bytes, plan.total_bytes)
    assert list_downloads() == []
    assert plan_download("org/model").files == ()
