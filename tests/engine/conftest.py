"""The real starter pair, loaded once for all engine tests, on a machine whose passes always cost the same."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from engine import LoadOptions, load
from engine.decoding.curve import CostCurve
from engine.decoding.odds import LookupOdds
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.perf.controller_priced import PricedController

# What the starter's passes were measured to take on an idle machine of two cores.
COSTS = CostCurve(
    (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    (0.056, 0.063, 0.069, 0.069, 0.079, 0.079, 0.084, 0.094, 0.113, 0.136, 0.171, 0.216),
    (0.0, 0.011, 0.012, 0.012, 0.013, 0.015, 0.015, *[0.017] * 5),
)


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
