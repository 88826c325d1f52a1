"""What all tests share: no model hub, and the real starter pair."""

from __future__ import annotations

import os

import pytest

# Before anything imports the hub's client: a test that asks the hub fails instead of waiting for a network.
os.environ["HF_HUB_OFFLINE"] = "1"

from engine.models import ResolvedPair, ensure_starter


@pytest.fixture(scope="session")
def starter() -> ResolvedPair:
    """The real starter pair in the user's data folder; ``make test`` has set it up before the tests begin."""
    return ensure_starter()
