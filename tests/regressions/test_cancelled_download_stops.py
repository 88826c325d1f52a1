"""jundot/omlx#1322: cancelling did not stop the worker; it kept on downloading and later loads were refused."""

from __future__ import annotations

import threading
import time

import pytest

from engine.models import Downloader, DownloadPlan, Progress, hub_client, list_downloads
from engine.models.hub_paths import hub_cache
from tests.hub_server import Fault, HubServer


@pytest.mark.parametrize("moment", ["downloading", "stalled", "waiting to try again"])
def test_cancel_ends_traffic_and_threads_at_once(
    hub: HubServer, remote_model: DownloadPlan, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = "org/model/model.safetensors"
    if moment == "stalled":
        hub.fail(weights, Fault("stall", after=100_000))
    elif moment == "waiting to try again":
        hub.fail(weights, Fault("status", status=429, headers={"Retry-After": "30"}))
    else:
        hub.held = 0.75
    assert hub_client.READ_S > 10.0, "a stalled connection must not end by itself here"
    threads, cancel, seen = set(threading.enumerate()), threading.Event(), list[Progress]()
    outcome: list[str] = []
    downloader = Downloader(remote_model, on_progress=seen.append, cancel=cancel)
    run = threading.Thread(target=lambda: outcome.append(downloader.run()))
    run.start()
    while not (hub.sent_bytes > 40_000 or any(progress.note for progress in seen)):
        time.sleep(0.01)
    cancel.set()
    run.join(10.0)
    assert outcome == ["cancelled"]
    ours = [thread for thread in threading.enumerate() if thread not in threads and "process_request" not in thread.name]
    assert ours == []
    assert list_downloads() == [] and not list(hub_cache().rglob("*slipstream-part"))
    hub.faults.clear()
    hub.held = None
    assert Downloader(remote_model).run() == "done"
