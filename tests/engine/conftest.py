"""The real starter pair, loaded once for all engine tests, on a machine whose passes always cost the same."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine import LoadOptions, load
from engine.decoding.odds import LookupOdds
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.quick_loads import COSTS, quick_loads
from tests.perf.controller_priced import PricedController

__all__ = ["engine", "fixed_costs", "frozen", "quick_loads"]


@pytest.fixture(scope="session")
def engine(starter: ResolvedPair) -> Iterator[Engine]:
    """An engine on the real starter pair."""
    loaded = load("starter", options=LoadOptions(prefix_disk_bytes=0))  # what one run of the tests keeps must not serve the next
    yield loaded
    loaded.close()


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """Libraries that a model's load imported stay too; see ``pytest_collection_finish`` in ``tests.conftest``."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fixed_costs(request: pytest.FixtureRequest) -> None:
    """What ``engine`` proposes follows neither this machine's mood nor the tests before."""
    if "engine" in request.fixturenames:
        used, odds = request.getfixturevalue("engine"), LookupOdds()
        used._controllers = {
            mode: PricedController(COSTS, max(known._all_lengths, default=1), odds) for mode, known in used._controllers.items()
        }
