"""unslothai/unsloth#8604, lmstudio-ai/lms#206: a gated model gave an unclear error, and there was nowhere to put a token."""

from __future__ import annotations

import keyring
import pytest

from app.core.downloads import Trouble
from app.ui.models.detail import remedy_words
from tests.gui.downloading import MODEL, MemoryKeychain, offer

CASES = {
    "no token": ("gated", "Open its page", True),
    "token without consent": ("gated", "Open its page", True),
    "no such model": ("missing", "Remove from list", False),
    "expired token": ("token", "Enter token", True),
}


def fail(qtbot, hub, window, case: str) -> Trouble:
    """Asks for the model in the state that ``case`` names; returns what the window shows."""
    offer(hub)
    keychain = MemoryKeychain()
    keyring.set_keyring(keychain)
    hub.repositories[MODEL].gated = case in ("no token", "token without consent")
    if case == "no such model":
        hub.repositories.clear()
    if case in ("token without consent", "expired token"):
        keychain.set_password("Slipstream", "hub access token", "hf_valid" if case.startswith("token") else "hf_expired")
    with qtbot.waitSignal(window.services.downloads.failed, timeout=20_000):
        window.services.downloads.get(MODEL)
    return window.services.downloads.find(MODEL).trouble


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise|propagateSizeHints)\(\)")
@pytest.mark.parametrize("case", CASES)
def test_the_window_says_what_to_do_and_has_a_button_for_it(qtbot, hub, window, case):
    kind, button, field = CASES[case]
    trouble = fail(qtbot, hub, window, case)
    assert (trouble.kind, remedy_words(trouble)) == (kind, button)
    window.model_manager.show(MODEL)
    detail = window.model_manager.window.detail
    qtbot.waitUntil(lambda: detail.row is not None and detail.row.id == MODEL, timeout=20_000)
    assert trouble.message in detail.trouble_text.text() and trouble.action in detail.trouble_text.text()
    assert not detail.remedy.isHidden() and detail.remedy.text() == button
    assert detail.token.isHidden() is not field
