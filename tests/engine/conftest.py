"""The real starter pair, loaded once for all engine tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import load
from engine.engine import Engine
from engine.models import ResolvedPair


@pytest.fixture(scope="session")
def engine(starter: ResolvedPair) -> Iterator[Engine]:
    """An engine on the real starter pair."""
    loaded = load("starter")
    yield loaded
    loaded.close()
