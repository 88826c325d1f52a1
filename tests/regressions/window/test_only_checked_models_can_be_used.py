"""janhq/jan#3727: a download that had failed was offered as "Use"."""

from __future__ import annotations

import pytest

from app.core.model_rows import disk_rows, model_rows
from engine import ModelError
from engine.models import resolve_pair
from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage
from tests.hub_server import Fault


def offers(services) -> set[str]:
    """Everything that can be done with the model, in both lists of the Models window."""
    shelf = services.library.shelf
    rows = [*model_rows(shelf, services.downloads.all()), *disk_rows(shelf)]
    return {action for row in rows if MODEL in row.id for action in row.actions}


def look(qtbot, services) -> None:
    with qtbot.waitSignal(services.library.changed, timeout=20_000):
        services.library.refresh()


def test_a_model_whose_file_has_a_wrong_hash_is_never_offered_for_chat(qtbot, hub, services):
    offer(hub)
    hub.fail(f"{MODEL}/model.safetensors", *[Fault("corrupt")] * 9)
    with qtbot.waitSignal(services.downloads.failed, timeout=20_000):
        services.downloads.get(MODEL)
    look(qtbot, services)
    assert services.downloads.find(MODEL).trouble.kind == "hash"
    assert "resume" in offers(services) and "chat" not in offers(services)
    with pytest.raises(ModelError):
        resolve_pair(MODEL)


def test_a_half_fetched_model_is_never_offered_for_chat(qtbot, hub, services):
    offer(hub, held=0.75)
    services.downloads.get(MODEL)
    wait_bytes(qtbot, services.downloads, SIZE // 3)
    for paused in (False, True):
        if paused:
            services.downloads.pause(MODEL)
            qtbot.waitUntil(lambda: not services.downloads.active, timeout=20_000)
        look(qtbot, services)
        assert "chat" not in offers(services)
        with pytest.raises(ModelError):
            resolve_pair(MODEL)
    hub.held = None
    services.downloads.get(MODEL)
    wait_stage(qtbot, services.downloads, "done")
    look(qtbot, services)
    assert "chat" in offers(services)
