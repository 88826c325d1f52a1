"""A bigger model is offered only where it fits this machine."""

from __future__ import annotations

import pytest

from app.core.suggestion import suggested
from engine.models import fits, list_pairs

GB = 10**9


@pytest.fixture(autouse=True)
def weights_as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Mac; on the CPU every value takes four bytes, so that little fits."""
    monkeypatch.setattr("engine.models.fit.on_cpu", lambda: False)


def test_the_largest_pair_that_fits_is_offered():
    offered = suggested("starter", 24 * GB)
    assert offered is not None and fits(offered.id, 8_192, 24 * GB).verdict == "fits"
    larger = [entry for entry in list_pairs() if entry.download_bytes > offered.download_bytes]
    assert larger and all(fits(entry.id, 8_192, 24 * GB).verdict != "fits" for entry in larger)


def test_more_memory_offers_no_smaller_pair():
    sizes = [offered.download_bytes for memory in (8, 16, 32, 64, 128) if (offered := suggested("starter", memory * GB))]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_nothing_is_offered_where_nothing_larger_fits():
    assert suggested("starter", 2 * GB) is None
    biggest = max(list_pairs(), key=lambda entry: entry.download_bytes or 0)
    assert suggested(biggest.id, 1_000 * GB) is None
