"""Downloads that try again at once, so that tests of faults do not wait."""

from __future__ import annotations

import pytest

from engine.models import hub_client


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the wait between two tries; how it grows has a test of its own."""
    monkeypatch.setattr(hub_client, "FIRST_WAIT_S", 0.02)
