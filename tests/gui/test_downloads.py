"""Downloads in the program: queue, pause, cancel and quit, against a real hub server on this machine."""

from __future__ import annotations

import threading
import time

import pytest

from engine.models import list_downloads, planning, resolve_pair
from engine.models.hub_client import READ_S
from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage, weight_requests
from tests.hub_server import Fault

THREE = ("org/first", "org/second", "org/third")


@pytest.fixture
def downloads(hub, services):
    """The service over an empty hub."""
    return services.downloads


def test_a_model_is_fetched_checked_and_usable(qtbot, hub, downloads):
    offer(hub)
    with qtbot.waitSignal(downloads.finished, timeout=20_000) as finished:
        downloads.get(MODEL)
    assert finished.args == [MODEL] and downloads.find(MODEL).stage == "done"
    assert (resolve_pair(MODEL).target / "model.safetensors").stat().st_size > SIZE
    assert not downloads.active


def test_progress_is_told_at_most_four_times_a_second(qtbot, hub, downloads):
    offer(hub, bytes_per_s=1_000_000)
    told = []
    downloads.changed.connect(lambda _model: told.append((downloads.find(MODEL).stage, time.monotonic())))
    downloads.get(MODEL)
    wait_stage(qtbot, downloads, "done")
    running = [at for stage, at in told if stage == "running"]
    assert len(running) >= 3
    assert len(running) <= 2 + 4 * (running[-1] - running[0] + 0.25)


def test_a_paused_download_goes_on_at_the_same_byte(qtbot, hub, downloads):
    offer(hub, held=0.75)
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 3)
    downloads.pause(MODEL)
    qtbot.waitUntil(lambda: not downloads.active, timeout=20_000)
    assert downloads.find(MODEL).stage == "paused"
    qtbot.waitUntil(lambda: hub.transfers == 0, timeout=20_000)
    hub.held = None
    downloads.get(MODEL)
    wait_stage(qtbot, downloads, "done")
    first, second = weight_requests(hub)
    assert first.range is None and int(second.range.removeprefix("bytes=").rstrip("-")) >= SIZE // 4


def test_pausing_and_going_on_at_once_loses_nothing(qtbot, hub, downloads):
    offer(hub, bytes_per_s=1_200_000)
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 4)
    for _ in range(3):
        downloads.pause(MODEL)
        downloads.get(MODEL)
    wait_stage(qtbot, downloads, "done")
    assert [download.id for download in downloads.all()] == [MODEL]


def test_cancelling_removes_what_was_fetched(qtbot, hub, downloads):
    offer(hub, held=0.75)
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 3)
    downloads.cancel(MODEL)
    qtbot.waitUntil(lambda: downloads.find(MODEL) is None, timeout=20_000)
    assert list_downloads() == [] and not downloads.active


def test_cancelling_a_paused_download_removes_what_was_fetched(qtbot, hub, downloads):
    offer(hub, held=0.75)
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 3)
    downloads.pause(MODEL)
    qtbot.waitUntil(lambda: not downloads.active, timeout=20_000)
    downloads.cancel(MODEL)
    qtbot.waitUntil(lambda: downloads.find(MODEL) is None, timeout=20_000)
    assert list_downloads() == []


def begin_three(qtbot, hub, downloads) -> str:
    """Asks for three models at once; returns the one that has to wait for its turn."""
    for name in THREE:
        offer(hub, name, held=0.75)
        downloads.get(name)
    stages = lambda: sorted(downloads.find(name).stage for name in THREE)  # noqa: E731
    qtbot.waitUntil(lambda: stages() == ["queued", "running", "running"], timeout=20_000)
    return next(name for name in THREE if downloads.find(name).stage == "queued")


def test_at_most_two_are_fetched_at_once_and_the_next_follows_by_itself(qtbot, hub, downloads):
    waiting = begin_three(qtbot, hub, downloads)
    assert not weight_requests(hub, waiting)
    hub.held = None
    for name in THREE:
        wait_stage(qtbot, downloads, "done", name)


def test_a_download_that_waits_for_its_turn_can_be_cancelled(qtbot, hub, downloads):
    waiting = begin_three(qtbot, hub, downloads)
    downloads.cancel(waiting)
    qtbot.waitUntil(lambda: downloads.find(waiting) is None, timeout=20_000)
    hub.held = None
    for name in THREE:
        if name != waiting:
            wait_stage(qtbot, downloads, "done", name)
    assert not weight_requests(hub, waiting)


def test_a_dropped_connection_is_taken_up_again_at_the_same_byte(qtbot, hub, downloads):
    offer(hub)
    hub.fail(f"{MODEL}/model.safetensors", Fault("drop", after=700_000))
    downloads.get(MODEL)
    wait_stage(qtbot, downloads, "done")
    first, second = weight_requests(hub)
    assert first.range is None and second.range == "bytes=700000-"


def test_a_network_that_is_away_is_waited_for_and_then_the_download_goes_on(qtbot, hub, downloads, monkeypatch):
    offer(hub, held=0.75)
    downloads.get(MODEL)
    wait_bytes(qtbot, downloads, SIZE // 3)
    downloads.pause(MODEL)
    qtbot.waitUntil(lambda: not downloads.active, timeout=20_000)
    address = hub.address
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    downloads.get(MODEL)
    wait_stage(qtbot, downloads, "waiting")
    assert downloads.find(MODEL).trouble.kind == "network" and not downloads.active
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert address == hub.address
    hub.held = None
    downloads._retry.setInterval(10)
    downloads._retry.start()
    wait_stage(qtbot, downloads, "done")
    assert downloads.find(MODEL).trouble is None


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda hub: hub.repositories[MODEL].__setattr__("gated", True), "gated"),
        (lambda hub: hub.repositories.pop(MODEL), "missing"),
        (lambda hub: hub.api_faults.extend([Fault("status", status=403)] * 3), "token"),
        (lambda hub: hub.api_faults.extend([Fault("status", status=429, headers={"Retry-After": "60"})] * 3), "rate"),
        (lambda hub: hub.fail(f"{MODEL}/model.safetensors", *[Fault("corrupt")] * 9), "hash"),
    ],
)
def test_each_fault_is_one_trouble_with_one_action(qtbot, hub, downloads, spoil, kind):
    offer(hub)
    spoil(hub)
    with qtbot.waitSignal(downloads.failed, timeout=20_000):
        downloads.get(MODEL)
    trouble = downloads.find(MODEL).trouble
    assert trouble.kind == kind and trouble.message and trouble.action
    assert not downloads.active


def test_a_failed_download_can_be_tried_again(qtbot, hub, downloads):
    offer(hub)
    hub.repositories[MODEL].gated = True
    with qtbot.waitSignal(downloads.failed, timeout=20_000):
        downloads.get(MODEL)
    hub.repositories[MODEL].gated = False
    downloads.get(MODEL)
    wait_stage(qtbot, downloads, "done")


def test_the_draft_comes_with_its_target_under_one_name(qtbot, hub, downloads):
    offer(hub)
    offer(hub, "org/model-DFlash")
    hub.repositories["org/model-DFlash"].files["config.json"] = (
        b'{"architectures": ["DFlashDraftModel"], "hidden_size": 64, "vocab_size": 500, "num_target_layers": 4}'
    )
    with qtbot.waitSignal(downloads.finished, timeout=20_000) as finished:
        downloads.get(MODEL)
    pair = f"{MODEL}+org/model-DFlash"
    assert finished.args == [pair] and [download.id for download in downloads.all()] == [pair]
    resolved = resolve_pair(pair)
    assert resolved.draft is not None and (resolved.draft / "config.json").is_file()


def test_what_the_user_paused_stays_paused_after_a_restart(qtbot, hub, make_services):
    offer(hub, held=0.75)
    first = make_services()
    first.downloads.get(MODEL)
    wait_bytes(qtbot, first.downloads, SIZE // 3)
    first.downloads.pause(MODEL)
    qtbot.waitUntil(lambda: not first.downloads.active, timeout=20_000)
    assert first.shutdown()
    second = make_services()
    second.downloads.restore()
    wait_stage(qtbot, second.downloads, "paused")
    asked = len(weight_requests(hub))
    qtbot.wait(300)
    assert len(weight_requests(hub)) == asked and second.downloads.find(MODEL).done >= SIZE // 4


def test_one_that_was_paused_before_its_first_byte_is_listed_after_a_restart(qtbot, hub, make_services):
    first = make_services()
    waiting = begin_three(qtbot, hub, first.downloads)
    first.downloads.pause(waiting)
    assert first.shutdown()
    hub.held = None
    second = make_services()
    second.downloads.restore()
    wait_stage(qtbot, second.downloads, "paused", waiting)
    assert not weight_requests(hub, waiting)
    second.downloads.get(waiting)
    for name in THREE:
        wait_stage(qtbot, second.downloads, "done", name)


def test_one_that_waited_for_its_turn_goes_on_after_a_restart(qtbot, hub, make_services):
    first = make_services()
    begin_three(qtbot, hub, first.downloads)
    assert first.shutdown()
    hub.held = None
    second = make_services()
    second.downloads.restore()
    for name in THREE:
        wait_stage(qtbot, second.downloads, "done", name)


def test_quitting_does_not_wait_for_a_thread_that_hangs_in_the_system(qtbot, make_services, monkeypatch, caplog):
    release = threading.Event()
    monkeypatch.setattr(planning, "plan_download", lambda _model: release.wait(30))  # as a look-up of a name may
    services = make_services()
    services.downloads.get(MODEL)
    began = time.monotonic()
    assert services.shutdown() is False
    assert time.monotonic() - began < 10.0 and "did not pause in time" in caplog.text
    release.set()
    assert services.downloads.shutdown(20.0)


def test_quitting_waits_at_most_a_second_for_a_server_that_says_nothing(qtbot, hub, make_services):
    offer(hub)
    hub.fail(f"{MODEL}/model.safetensors", *[Fault("stall", after=700_000)] * 3)
    services = make_services()
    services.downloads.get(MODEL)
    wait_bytes(qtbot, services.downloads, 500_000)
    began = time.monotonic()
    services.downloads.shutdown()
    assert time.monotonic() - began < READ_S, "the server's silence itself is waited for longer"
