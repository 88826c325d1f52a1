"""What the reports share: a model on the test hub, tries that follow each other at once, and quick loads of tiny pairs."""

from __future__ import annotations

import pytest

from engine.models import DownloadPlan, hub_client, plan_download
from tests.engine.quick_loads import quick_loads
from tests.hub_server import HubServer
from tests.remote_models import add_model

__all__ = ["quick_loads", "remote_model"]


@pytest.fixture
def remote_model(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> DownloadPlan:
    """The plan of ``org/model`` on the test hub, whose weights are ``org/model/model.safetensors``."""
    monkeypatch.setattr(hub_client, "FIRST_WAIT_S", 0.02)
    add_model(hub, "org/model", (400_000,))
    return plan_download("org/model", with_draft=False)
