"""janhq/jan#1422: after the Mac had slept the download was dead; its socket was open and nothing came."""

from __future__ import annotations

import pytest

from engine.models import Downloader, DownloadPlan, hub_client
from tests.hub_server import Fault, HubServer


def test_a_connection_that_says_nothing_is_given_up_and_taken_up_again(
    hub: HubServer, remote_model: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "READ_S", 0.3)
    hub.fail("org/model/model.safetensors", Fault("stall", after=80_000), Fault("stall"))
    assert Downloader(remote_model).run() == "done"
    asked = [seen.range for seen in hub.requests_for("model.safetensors", "store")]
    assert asked == [None, "bytes=80000-", "bytes=80000-"]
