"""janhq/jan#8000: a slow network and a quit put the download back to 0 %."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from engine.models import Downloader, DownloadPlan, list_downloads, resolve_pair
from tests.hub_server import HubServer

CHILD = "from engine.models import Downloader, plan_download; Downloader(plan_download('org/model', with_draft=False)).run()"


def test_a_killed_download_is_listed_and_goes_on_at_its_byte(hub: HubServer, remote_model: DownloadPlan) -> None:
    hub.held = 0.75
    child = subprocess.Popen([sys.executable, "-c", CHILD])
    while sum(state.done_bytes for state in list_downloads()) < 0.5 * remote_model.total_bytes:
        time.sleep(0.01)
        assert child.poll() is None
    assert list_downloads()[0].running
    child.send_signal(signal.SIGKILL)
    child.wait()
    hub.held = None
    (state,) = list_downloads()
    assert not state.running and 0.5 * state.total_bytes < state.done_bytes < state.total_bytes
    small = sum(file.size for file in state.plan.files if file.path != "model.safetensors")
    hub.seen.clear()
    assert Downloader(state.plan).run() == "done"
    (asked,) = hub.requests_for("model.safetensors", "store")
    assert asked.range == f"bytes={state.done_bytes - small}-"
    written = resolve_pair("org/model").target / "model.safetensors"
    assert written.read_bytes() == hub.repositories["org/model"].files["model.safetensors"]
