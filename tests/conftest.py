"""What all tests share: no model hub, no time limit for one example of a property, and the real starter pair."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Before anything imports the hub's client: a test that asks the hub fails instead of waiting for a network.
os.environ["HF_HUB_OFFLINE"] = "1"
# What the tests read on the screen is English, whatever the machine speaks.
os.environ["LC_ALL"] = "C.UTF-8"
os.environ.pop("LANGUAGE", None)

from engine.models import ResolvedPair, ensure_starter
from tests.hub_server import HubServer

# Property tests judge results, not time: a busy machine must not fail them. They draw the same examples at every run, so that
# one commit has one result; `make test-all` draws fresh ones (--hypothesis-profile=fresh).
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None)
settings.load_profile("same")

# Until all tests are collected: what is imported and collected stays, and walking it again and again takes seconds.
gc.disable()


def pytest_collection_finish() -> None:
    """What is there before the first test is never garbage: the window tests collect after each one, and would walk all of it."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def starter() -> ResolvedPair:
    """The real starter pair in the user's data folder; ``make test`` has set it up before the tests begin."""
    return ensure_starter()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub on this machine that everything here asks, with an empty cache and empty folders of our own, and no token."""
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HF_HUB_CACHE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub home"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "slipstream"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # LM Studio's folders lie there
    import huggingface_hub.constants
    import keyring
    from keyring.backends.null import Keyring

    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "hub home" / "token"))

    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server
    keyring.set_keyring(before)
