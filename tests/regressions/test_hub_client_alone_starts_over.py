"""huggingface/huggingface_hub#4196, antirez/ds4#1048: the hub's own client begins again at 0 after it was killed.

This pins why bytes are fetched by our own code. If it fails, the client has learned to resume, and ours may go.
"""

from __future__ import annotations

import subprocess
import sys
import time

from engine.models import Downloader, DownloadPlan
from tests.hub_server import HubServer

THEIRS = "from huggingface_hub import hf_hub_download; hf_hub_download('org/model', 'model.safetensors')"


def test_the_hubs_client_does_not_resume_a_killed_download_and_ours_does(hub: HubServer, remote_model: DownloadPlan) -> None:
    hub.held = 0.75
    child = subprocess.Popen([sys.executable, "-c", THEIRS], stderr=subprocess.DEVNULL)
    while hub.sent_bytes < 200_000:
        time.sleep(0.01)
        assert child.poll() is None
    child.kill()
    child.wait()
    hub.held = None
    hub.seen.clear()
    subprocess.run([sys.executable, "-c", THEIRS], check=True, stderr=subprocess.DEVNULL)
    asked = hub.requests_for("model.safetensors", "store")
    assert asked and all(seen.range is None for seen in asked)
    hub.seen.clear()
    assert Downloader(remote_model).run() == "done"
    assert not hub.requests_for("model.safetensors", "store"), "what their client fetched is found, not fetched again"
