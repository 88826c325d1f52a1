"""ollama/ollama#6727, open-webui/open-webui#8573: nobody looked at the free space first."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from engine.models import Downloader, DownloadPlan, DownloadProblem, Progress, room
from engine.models.room import RESERVE_BYTES
from tests.hub_server import HubServer


def test_a_download_that_does_not_fit_is_refused_with_the_numbers(
    hub: HubServer, remote_model: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda folder: RESERVE_BYTES + remote_model.total_bytes - 1)
    hub.seen.clear()
    with pytest.raises(DownloadProblem) as caught:
        Downloader(remote_model).run()
    assert caught.value.kind == "disk" and "0.4 MB" in caught.value.message and "1.1 GB" in caught.value.message
    assert hub.seen == []


def test_other_running_downloads_are_counted(hub: HubServer, remote_model: DownloadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone it fits, beside the rest of a running one it does not, and once that is paused it does again."""
    free = RESERVE_BYTES + remote_model.total_bytes + 1000
    monkeypatch.setattr(room, "free_bytes", lambda folder: free)
    hub.bytes_per_s = 200_000
    other = replace(remote_model, id="other", files=tuple(replace(file, digest="0" * 64) for file in remote_model.files))
    problems: list[DownloadProblem] = []
    pause = threading.Event()

    def begin_second(progress: Progress) -> None:
        if not problems and progress.done > 50_000:
            with pytest.raises(DownloadProblem) as caught:
                Downloader(other).run()
            problems.append(caught.value)
            pause.set()

    assert Downloader(remote_model, on_progress=begin_second, pause=pause).run() == "paused"
    assert problems[0].kind == "disk" and "other downloads will take 0." in problems[0].message
    pause.clear()
    assert Downloader(replace(remote_model, id="alone")).run() == "done"
