"""lmstudio-ai/lmstudio-bug-tracker#1588, #235: a company's proxy and its own certificate were ignored."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from engine.models import Downloader, DownloadProblem, plan_download
from tests.hub_server import HubServer
from tests.proxy_server import ProxyServer
from tests.remote_models import add_model


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, Path]:
    """A certificate authority that this machine does not know, and its certificate in a file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "company.pem")
    return authority, tmp_path / "company.pem"


@pytest.fixture
def company_hub(hub: HubServer, authority: tuple[trustme.CA, Path], monkeypatch: pytest.MonkeyPatch):
    """The hub behind a company's own certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority[0].issue_cert("localhost", "127.0.0.1").configure_cert(context)
    with HubServer(context) as server:
        add_model(server, "org/model")
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_an_own_certificate_is_taken_from_the_environment(
    company_hub: HubServer, authority: tuple[trustme.CA, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(authority[1]))
    assert Downloader(plan_download("org/model", with_draft=False)).run() == "done"


def test_a_certificate_that_is_not_trusted_is_named_as_such(company_hub: HubServer) -> None:
    with pytest.raises(DownloadProblem) as caught:
        plan_download("org/model")
    assert caught.value.kind == "certificate" and "SSL_CERT_FILE" in caught.value.action
    assert company_hub.seen == []


def test_a_certificate_file_that_is_not_there_is_named(company_hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(DownloadProblem, match=r"/no/such/file\.pem"):
        plan_download("org/model")


def test_everything_goes_through_the_proxy_of_the_environment(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(hub, "org/model")
    with ProxyServer(login="me:secret word") as proxy:
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//me:secret%20word@"))
        assert Downloader(plan_download("org/model", with_draft=False)).run() == "done"
        assert len(proxy.passed) == len(hub.seen) > 3


def test_a_proxy_that_wants_a_login_or_is_gone_is_named_and_not_the_hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(hub, "org/model")
    with ProxyServer(login="me:secret") as proxy:
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//me:wrong-word@"))
        with pytest.raises(DownloadProblem) as caught:
            plan_download("org/model")
        assert caught.value.kind == "proxy" and "user name" in str(caught.value) and "wrong-word" not in str(caught.value)
    with pytest.raises(DownloadProblem) as caught:
        plan_download("org/model")
    assert caught.value.kind == "proxy" and "cannot be reached" in str(caught.value) and "wrong-word" not in str(caught.value)
