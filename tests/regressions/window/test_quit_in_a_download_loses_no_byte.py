"""janhq/jan#8000: who quit during a slow download began again at 0 %."""

from __future__ import annotations

from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage, weight_requests


def test_the_first_request_after_a_quit_asks_for_the_next_byte(qtbot, hub, make_services):
    offer(hub, held=0.75)
    first = make_services()
    first.downloads.get(MODEL)
    wait_bytes(qtbot, first.downloads, round(0.6 * SIZE))
    assert first.shutdown()
    hub.held = None
    hub.seen.clear()
    second = make_services()
    second.downloads.restore()
    wait_stage(qtbot, second.downloads, "done")
    (asked,) = weight_requests(hub)
    assert asked.range is not None and int(asked.range.removeprefix("bytes=").rstrip("-")) >= 0.5 * SIZE
