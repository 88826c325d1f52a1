"""janhq/jan#7066: the network went away in the middle of a download, which then was stuck for ever and could only be cancelled."""

from __future__ import annotations

from engine.models import Downloader, DownloadPlan, Progress, resolve_pair
from tests.hub_server import Fault, HubServer


def test_a_dropped_download_goes_on_by_itself_at_the_same_byte(hub: HubServer, remote_model: DownloadPlan) -> None:
    hub.fail("org/model/model.safetensors", Fault("drop", after=100_000), Fault("drop", after=150_000), Fault("status", status=502))
    seen: list[Progress] = []
    assert Downloader(remote_model, on_progress=seen.append).run() == "done"
    asked = [seen.range for seen in hub.requests_for("model.safetensors", "store")]
    assert asked == [None, "bytes=100000-", "bytes=250000-", "bytes=250000-"]
    written = resolve_pair("org/model").target / "model.safetensors"
    assert written.read_bytes() == hub.repositories["org/model"].files["model.safetensors"]
