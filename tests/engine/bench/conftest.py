"""One tiny pair for all benchmark tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import load
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.bench.pairs import write_pair


@pytest.fixture(scope="session")
def tiny_pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> str:
    """TARGET+DRAFT of a tiny random pair."""
    return write_pair(tmp_path_factory.mktemp("pair"), starter)


@pytest.fixture(scope="session")
def tiny_engine(tiny_pair: str) -> Iterator[Engine]:
    loaded = load(tiny_pair)
    yield loaded
    loaded.close()
