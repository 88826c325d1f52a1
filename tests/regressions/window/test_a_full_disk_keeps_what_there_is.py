"""lmstudio-ai/lmstudio-bug-tracker#232, #703, #889: on a full disk the program ended without a word."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.gui.conftest import wait_ready
from tests.gui.downloading import MODEL, SIZE, offer, wait_stage, weight_requests


@contextmanager
def full_disk() -> Iterator[None]:
    """The system refuses to let a file grow over 1 MB, as it does where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_download_says_so_keeps_its_bytes_and_the_chats_go_on(qtbot, hub, window):
    offer(hub)
    with full_disk():
        with qtbot.waitSignal(window.services.downloads.failed, timeout=20_000):
            window.services.downloads.get(MODEL)
        trouble = window.services.downloads.find(MODEL).trouble
        assert trouble.kind == "disk" and "disk is full" in trouble.message and "free some space" in trouble.action
        assert "The disk is full" in window.banner.text
        window.composer.set_text("Are you there?")
        window.do.send()
        wait_ready(qtbot, window.services.client)
        chat = window.services.conversation.chat
        assert [message.state for message in window.services.store.messages(chat.id)] == ["sent", "done"]
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    again = weight_requests(hub)[-1].range
    assert again is not None and 0 < int(again.removeprefix("bytes=").rstrip("-")) <= 1_000_000 < SIZE
