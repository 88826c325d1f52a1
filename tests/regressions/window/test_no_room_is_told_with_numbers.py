"""ollama/ollama#6727, open-webui/open-webui#8573: nobody looked at the free space, and a full disk ended the download."""

from __future__ import annotations

from engine.models import room
from engine.models.room import RESERVE_BYTES
from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage, weight_requests


def test_needed_and_free_bytes_are_told_before_a_byte_is_fetched(qtbot, hub, services, monkeypatch):
    offer(hub)
    monkeypatch.setattr(room, "free_bytes", lambda folder: RESERVE_BYTES)
    with qtbot.waitSignal(services.downloads.failed, timeout=20_000):
        services.downloads.get(MODEL)
    trouble = services.downloads.find(MODEL).trouble
    assert trouble.kind == "disk" and "needs 1.6 MB" in trouble.message and "1.1 GB are free" in trouble.message
    assert "free at least 1.6 MB" in trouble.action and not weight_requests(hub)


def test_what_runs_already_is_counted(qtbot, hub, services, monkeypatch):
    for name in ("org/first", "org/second"):
        offer(hub, name, held=0.1)
    monkeypatch.setattr(room, "free_bytes", lambda folder: RESERVE_BYTES + round(1.5 * SIZE))
    services.downloads.get("org/first")
    wait_bytes(qtbot, services.downloads, 1, "org/first")
    with qtbot.waitSignal(services.downloads.failed, timeout=20_000):
        services.downloads.get("org/second")
    assert "other downloads will take" in services.downloads.find("org/second").trouble.message
    hub.held = None
    wait_stage(qtbot, services.downloads, "done", "org/first")
