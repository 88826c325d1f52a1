"""Downloads from a hub on this machine: everything arrives whole, whatever the connection does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.models import (
    Downloader,
    DownloadPlan,
    DownloadProblem,
    Progress,
    discard,
    download,
    hub_client,
    ledger,
    list_downloads,
    plan_download,
    resolve_pair,
    transfer,
    verify_model,
)
from engine.models.hub_paths import blob_path, hub_cache, part_path
from engine.models.repository import read_repository
from tests.hub_server import Fault, HubServer, Repository
from tests.remote_models import add_model

WEIGHTS = "org/model/model.safetensors"


@pytest.fixture
def plan(hub: HubServer, eager: None) -> DownloadPlan:
    add_model(hub, "org/model")
    return plan_download("org/model", with_draft=False)


def begins(hub: HubServer) -> list[str | None]:
    """The Range headers with which the weights were asked for, in order."""
    return [seen.range for seen in hub.requests_for("model.safetensors", "store")]


def test_a_model_of_the_hub_arrives_and_can_be_resolved(hub: HubServer) -> None:
    files = add_model(hub, "org/model")
    plan = plan_download("org/model")
    assert plan.no_draft_reason is not None and "lookup" in plan.no_draft_reason
    assert plan.total_bytes == sum(len(data) for data in files.values()) and plan.present_bytes == 0
    seen: list[Progress] = []
    assert Downloader(plan, on_progress=seen.append).run() == "done"
    folder = resolve_pair("org/model").target
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert (seen[-1].done, seen[-1].total) == (plan.total_bytes, plan.total_bytes)
    assert list_downloads() == []
    again = plan_download("org/model", with_draft=False)
    assert (again.files, again.found) == ((), ("org/model",))


def test_the_hubs_own_client_finds_what_was_downloaded(hub: HubServer, plan: DownloadPlan) -> None:
    """In a process of its own, as another tool would."""
    Downloader(plan).run()
    code = "from huggingface_hub import snapshot_download; print(snapshot_download('org/model', local_files_only=True))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(found).resolve() == resolve_pair("org/model").target.resolve()


@pytest.mark.parametrize("names", [{}, {"HF_HOME": "/x/home"}, {"HF_HUB_CACHE": "/x/cache"}, {"XDG_CACHE_HOME": "/x/cache home"}])
def test_the_cache_lies_where_the_hubs_own_client_has_it(names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    code = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert str(hub_cache()) == theirs


@pytest.mark.parametrize("commit", ["../" * 20 + "elsewhere", "", "main"])
def test_a_commit_that_is_no_hash_is_refused_before_it_names_a_folder(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, commit: str
) -> None:
    add_model(hub, "org/model")
    monkeypatch.setattr(Repository, "commit", commit)
    with pytest.raises(DownloadProblem, match="in a way not understood"):
        plan_download("org/model", with_draft=False)


def test_looking_at_the_downloads_does_not_make_one_refuse_to_run(plan: DownloadPlan) -> None:
    """Whether a download runs is told by its lock, which a list of downloads takes for a moment."""
    looking = threading.Event()

    def look() -> None:
        with ledger.running_lock(plan.id):
            looking.set()
            time.sleep(0.15)

    looker = threading.Thread(target=look)
    looker.start()
    looking.wait()
    assert Downloader(plan).run() == "done"
    looker.join()


def test_a_server_that_ignores_the_range_starts_over_and_ends_right(hub: HubServer, plan: DownloadPlan) -> None:
    hub.fail(WEIGHTS, Fault("drop", after=100_000), Fault("no range"))
    Downloader(plan).run()
    assert begins(hub) == [None, "bytes=100000-"]
    assert resolve_pair("org/model").target.joinpath("model.safetensors").read_bytes() == hub.repositories["org/model"].files[
        "model.safetensors"
    ]


def test_faults_that_pass_are_outlived(hub: HubServer, plan: DownloadPlan) -> None:
    hub.fail(WEIGHTS, Fault("status", status=503), Fault("drop"), Fault("status", status=502), Fault("drop", after=50_000))
    assert Downloader(plan).run() == "done"
    assert begins(hub)[-1] == "bytes=50000-"


def test_being_asked_to_wait_is_obeyed(hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = transfer.asyncio.sleep

    async def note_and_go_on(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(transfer.asyncio, "sleep", note_and_go_on)
    hub.fail(WEIGHTS, Fault("status", status=429, headers={"Retry-After": "7"}))
    Downloader(plan).run()
    assert len(waits) == 1 and 7.0 <= waits[0] <= 9.0


def test_a_part_that_is_too_long_or_not_the_file_is_fetched_again(hub: HubServer, plan: DownloadPlan) -> None:
    weights = next(file for file in plan.files if file.path == "model.safetensors")
    for content in (b"x" * (weights.size + 5), b"x" * weights.size, b"x" * 1000):
        part = part_path(weights)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        Downloader(plan).run()
        assert blob_path(weights).read_bytes() == hub.repositories["org/model"].files["model.safetensors"]
        blob_path(weights).unlink()


def test_a_blob_that_is_here_but_damaged_is_fetched_again(hub: HubServer, plan: DownloadPlan) -> None:
    weights = next(file for file in plan.files if file.path == "model.safetensors")
    blob_path(weights).parent.mkdir(parents=True)
    blob_path(weights).write_bytes(b"x" * weights.size)
    Downloader(plan).run()
    assert blob_path(weights).read_bytes() == hub.repositories["org/model"].files["model.safetensors"]


def test_when_nothing_comes_for_long_it_says_so_and_keeps_what_came(
    hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer.fetch, "__defaults__", (0.1,))
    hub.fail(WEIGHTS, Fault("drop", after=64_000), *[Fault("drop")] * 30)
    with pytest.raises(DownloadProblem) as caught:
        Downloader(plan).run()
    assert caught.value.kind == "network"
    (state,) = list_downloads()
    assert state.done_bytes >= 64_000 and not state.running
    hub.faults.clear()
    assert Downloader(state.plan).run() == "done"
    assert begins(hub)[-1] == "bytes=64000-"


def test_a_login_page_instead_of_the_file_is_told_from_it(hub: HubServer, plan: DownloadPlan) -> None:
    hub.fail(WEIGHTS, Fault("status", status=200))
    with pytest.raises(DownloadProblem, match="login page"):
        Downloader(plan).run()


def test_pausing_keeps_the_bytes_and_discarding_gives_them_back(hub: HubServer, plan: DownloadPlan) -> None:
    hub.bytes_per_s = 400_000
    pause = threading.Event()

    def show(progress: Progress) -> None:
        if progress.done > 60_000:
            pause.set()

    assert Downloader(plan, on_progress=show, pause=pause).run() == "paused"
    (state,) = list_downloads()
    assert (state.id, state.running) == ("org/model", False) and 60_000 < state.done_bytes < plan.total_bytes
    with pytest.raises(ModelError):
        resolve_pair("org/model")
    assert discard("org/model") == state.done_bytes
    assert list_downloads() == [] and not list(hub_cache().rglob("*slipstream-part"))


def test_discarding_leaves_what_another_download_has_of_the_same_files(hub: HubServer, plan: DownloadPlan) -> None:
    pause = threading.Event()
    pause.set()
    hub.bytes_per_s = 400_000
    other = replace(plan, id="other pair")
    for each in (plan, other):
        stop = threading.Event()
        Downloader(each, on_progress=lambda progress, stop=stop: stop.set() if progress.done > 60_000 else None, pause=stop).run()
    kept = list_downloads()[0].done_bytes
    assert discard("other pair") == 0
    (state,) = list_downloads()
    assert state.done_bytes == kept > 60_000


def test_one_download_does_not_run_twice_at_once(hub: HubServer, plan: DownloadPlan) -> None:
    hub.bytes_per_s = 200_000
    refused: list[str] = []

    def second(progress: Progress) -> None:
        if not refused:
            assert list_downloads()[0].running
            with pytest.raises(ModelError) as caught:
                Downloader(plan).run()
            refused.append(str(caught.value))

    Downloader(plan, on_progress=second).run()
    assert "already" in refused[0]


def test_two_downloads_that_share_files_run_at_once_and_fetch_them_once(hub: HubServer, plan: DownloadPlan) -> None:
    threads = [threading.Thread(target=Downloader(replace(plan, id=name)).run) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(begins(hub)) == 1 and list_downloads() == []


def test_speed_and_remaining_time_are_shown(hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SPEED_WINDOW_S", 1e9)  # all of it counts, however slow this machine is
    hub.bytes_per_s = 250_000
    seen: list[tuple[float, Progress]] = []
    Downloader(plan, on_progress=lambda progress: seen.append((time.monotonic(), progress))).run()
    began, first = seen[0]
    at, last = [each for each in seen if 0 < each[1].done < each[1].total][-1]
    assert last.bytes_per_s == pytest.approx((last.done - first.done) / (at - began), rel=0.3) and last.bytes_per_s < 400_000
    assert last.remaining_s == pytest.approx((last.total - last.done) / last.bytes_per_s)


def test_a_model_in_many_files_is_fetched_several_files_at_once_but_not_all(hub: HubServer, eager: None) -> None:
    add_model(hub, "org/large", (40_000,) * 9)
    hub.bytes_per_s = 200_000
    most = 0

    def show(progress: Progress) -> None:
        nonlocal most
        most = max(most, hub.transfers)

    Downloader(plan_download("org/large", with_draft=False), on_progress=show).run()
    assert 2 <= most <= 4


def test_a_folder_that_cannot_be_written_is_one_line(hub: HubServer, plan: DownloadPlan, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(DownloadProblem) as caught:
        Downloader(plan, blocked).run()
    assert caught.value.kind == "disk" and "\n" not in str(caught.value)


def test_nothing_is_asked_where_the_hub_is_switched_off(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadProblem, match="HF_HUB_OFFLINE"):
        plan_download("org/model")
    assert hub.seen == []
    assert os.environ["HF_ENDPOINT"] == hub.address


def test_on_a_disk_without_links_the_files_lie_in_the_model_itself(
    hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("this disk has no links")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    Downloader(plan).run()
    folder = resolve_pair("org/model").target
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert (folder / "model.safetensors").read_bytes() == hub.repositories["org/model"].files["model.safetensors"]
    hub.seen.clear()
    assert Downloader(plan).run() == "done" and not hub.requests_for("", "store")


def test_more_downloads_than_places_wait_for_their_turn_and_can_be_paused_there(
    hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_places", threading.BoundedSemaphore(1))
    hub.bytes_per_s = 300_000
    outcomes: list[str] = []
    waiting, pause = threading.Event(), threading.Event()

    def begin_second(progress: Progress) -> None:
        if progress.done > 20_000 and not second.is_alive() and not outcomes:
            second.start()

    def note(progress: Progress) -> None:
        assert progress.phase == "waiting" and progress.bytes_per_s == 0
        waiting.set()
        pause.set()

    add_model(hub, "org/other")
    other = Downloader(plan_download("org/other", with_draft=False), on_progress=note, pause=pause)
    second = threading.Thread(target=lambda: outcomes.append(other.run()))
    assert Downloader(plan, on_progress=begin_second).run() == "done"
    second.join(10)
    assert waiting.is_set() and outcomes == ["paused"]


def test_the_wait_between_tries_doubles_up_to_half_a_minute() -> None:
    assert [hub_client.backoff(attempt) for attempt in (0, 1, 2, 5, 6, 60)] == [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]


def test_a_connection_that_brings_something_each_time_is_not_waited_for_longer_and_longer(
    hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    monkeypatch.setattr(transfer, "backoff", lambda attempt: tries.append(attempt) or 0.0)
    hub.fail(WEIGHTS, *[Fault("drop", after=20_000)] * 3, Fault("drop"), Fault("drop"), Fault("drop", after=20_000))
    Downloader(plan).run()
    assert tries == [0, 0, 0, 1, 2, 0]


def test_discarding_an_update_leaves_the_files_of_the_model_that_is_here(hub: HubServer, plan: DownloadPlan) -> None:
    Downloader(plan).run()
    hub.repositories["org/model"].files["README.md"] = b"a newer text"
    described = read_repository("org/model")
    update = replace(plan, id="update", files=described.files)
    pause = threading.Event()
    pause.set()
    assert Downloader(update, pause=pause).run() == "paused"
    discard("update")
    assert verify_model("org/model") == []


def test_what_is_here_already_needs_no_network(hub: HubServer, plan: DownloadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    Downloader(plan).run()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    again = plan_download("org/model", with_draft=False)
    assert again.found == ("org/model",) and Downloader(again).run() == "done" and list_downloads() == []
