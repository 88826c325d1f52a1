"""What all tests share: no model hub, no time limit for one example of a property, and the real starter pair."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Before anything imports the hub's client: a test that asks the hub fails instead of waiting for a network.
os.environ["HF_HUB_OFFLINE"] = "1"

from engine.models import ResolvedPair, ensure_starter

# Property tests judge results, not time: a busy machine must not fail them.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def starter() -> ResolvedPair:
    """The real starter pair in the user's data folder; ``make test`` has set it up before the tests begin."""
    return ensure_starter()
