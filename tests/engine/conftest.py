"""The real starter pair, loaded once for all engine tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import LoadOptions, load
from engine.engine import Engine
from engine.models import ResolvedPair


@pytest.fixture(scope="session")
def engine(starter: ResolvedPair) -> Iterator[Engine]:
    """An engine on the real starter pair."""
    loaded = load("starter", options=LoadOptions(prefix_disk_bytes=0))  # what one run of the tests keeps must not serve the next
    yield loaded
    loaded.close()
