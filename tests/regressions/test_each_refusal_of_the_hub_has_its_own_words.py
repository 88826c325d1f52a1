"""unslothai/unsloth#8604, lmstudio-ai/lms#206: a gated model gave an unclear error, and there was no place for a token."""

from __future__ import annotations

import pytest

from engine.models import Downloader, DownloadProblem, hub_client, plan_download
from tests.hub_server import Fault, HubServer
from tests.remote_models import add_model


def problem(wanted: str, token: str | None = None) -> DownloadProblem:
    with pytest.raises(DownloadProblem) as caught:
        plan_download(wanted, token=token, with_draft=False)
    assert "\n" not in str(caught.value) and "hf_" not in str(caught.value)
    return caught.value


def test_gated_missing_and_expired_are_told_apart_with_one_action_each(hub: HubServer) -> None:
    add_model(hub, "org/gated", gated=True)
    alone, known = problem("org/gated"), problem("org/gated", "hf_valid")
    missing, private = problem("org/none"), problem("org/none", "hf_valid")
    expired = problem("org/gated", "hf_expired")
    assert [each.kind for each in (alone, known, missing, private, expired)] == ["gated", "gated", "missing", "missing", "token"]
    assert alone.url == known.url == f"{hub.address}/org/gated"
    assert "token" in alone.action and "try again" in known.action
    assert expired.url == f"{hub.address}/settings/tokens"
    assert len({alone.action, known.action, missing.action, expired.action}) == 4
    plan = plan_download("org/gated", token="hf_granted", with_draft=False)
    assert Downloader(plan, token="hf_granted").run() == "done"


def test_access_that_ends_during_a_download_is_told_at_once(hub: HubServer) -> None:
    add_model(hub, "org/gated", gated=True)
    plan = plan_download("org/gated", token="hf_granted", with_draft=False)
    hub.granted.clear()
    with pytest.raises(DownloadProblem) as caught:
        Downloader(plan, token="hf_granted").run()
    assert caught.value.kind == "gated"


def test_being_asked_too_often_says_when_to_come_back(hub: HubServer) -> None:
    add_model(hub, "org/model")
    hub.api_faults.append(Fault("status", status=429, headers={"Retry-After": "120"}))
    told = problem("org/model")
    assert told.kind == "rate" and "120 seconds" in told.action


def test_a_fault_of_the_hub_is_not_called_the_users(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "FIRST_WAIT_S", 0.02)
    add_model(hub, "org/model")
    hub.api_faults.extend([Fault("status", status=500)] * 3)
    told = problem("org/model")
    assert told.kind == "network" and "500" in told.message
