"""The access token: the keychain first, never shown, never sent to another host."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

from engine.errors import ModelError
from engine.models import Downloader, DownloadProblem, plan_download, read_token, save_token
from tests.hub_server import Fault, HubServer
from tests.remote_models import add_model

SECRET = "hf_granted"


class MemoryKeychain(KeyringBackend):
    """A keychain that lasts as long as a test; ``locked`` refuses as a locked one does."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("there is none")

    def _open(self) -> None:
        if self.locked:
            raise KeyringLocked("locked")


@pytest.fixture
def keychain(hub: HubServer) -> Iterator[MemoryKeychain]:
    before, chain = keyring.get_keyring(), MemoryKeychain()
    keyring.set_keyring(chain)
    yield chain
    keyring.set_keyring(before)


def test_a_token_is_kept_in_the_keychain_and_nowhere_else(keychain: MemoryKeychain, tmp_path: Path) -> None:
    assert read_token() is None
    save_token("  hf_mine \n")
    assert read_token() == "hf_mine" and list(keychain.kept) == [("Slipstream", "hub access token")]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hf_mine" in path.read_bytes()]
    save_token("")
    save_token("")
    assert read_token() is None


def test_the_keychain_comes_before_the_environment_and_that_before_the_hubs_file(
    keychain: MemoryKeychain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hub home").mkdir(exist_ok=True)
    (tmp_path / "hub home/token").write_text("hf_file\n")
    assert read_token() == "hf_file"
    monkeypatch.setenv("HF_TOKEN", "hf_environment")
    assert read_token() == "hf_environment"
    save_token("hf_keychain")
    assert read_token() == "hf_keychain"


def test_a_locked_keychain_does_not_stop_asking_but_says_so_when_saving(keychain: MemoryKeychain) -> None:
    keychain.locked = True
    assert read_token() is None
    with pytest.raises(ModelError, match="HF_TOKEN"):
        save_token("hf_mine")


@pytest.mark.parametrize("text", ["two words", "hf_ключ", "hf_a\nhf_b"])
def test_what_cannot_be_a_token_is_refused_without_repeating_it(keychain: MemoryKeychain, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        save_token(text)
    assert text not in str(caught.value) and keychain.kept == {}


def test_the_kept_token_opens_a_gated_model(hub: HubServer, keychain: MemoryKeychain) -> None:
    add_model(hub, "org/gated", gated=True)
    save_token(SECRET)
    assert Downloader(plan_download("org/gated", with_draft=False)).run() == "done"


def test_the_token_is_not_sent_to_the_host_that_a_file_is_redirected_to(hub: HubServer) -> None:
    add_model(hub, "org/gated", gated=True)
    Downloader(plan_download("org/gated", token=SECRET, with_draft=False), token=SECRET).run()
    assert {seen.authorization for seen in hub.requests_for("", "hub")} == {f"Bearer {SECRET}"}
    stored = hub.requests_for("model.safetensors", "store")
    assert stored and {seen.authorization for seen in stored} == {None}


def test_neither_the_token_nor_a_signed_address_reaches_a_log_or_an_error(
    eager: None, hub: HubServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    add_model(hub, "org/model")
    plan = plan_download("org/model", token=SECRET, with_draft=False)
    hub.fail("org/model/model.safetensors", Fault("drop", after=100), Fault("corrupt"), Fault("corrupt"))
    told: list[str] = []
    with pytest.raises(DownloadProblem) as caught:
        Downloader(plan, token=SECRET, on_progress=lambda progress: told.append(repr(progress))).run()
    hub.api_faults.extend([Fault("status", status=500)] * 3)
    with pytest.raises(DownloadProblem) as other:
        plan_download("org/model", token=SECRET, with_draft=False)
    shown = " ".join([caplog.text, *capfd.readouterr(), *told, *(f"{error.value!r} {error.value}" for error in (caught, other))])
    files = [path.read_bytes() for path in (tmp_path / "slipstream").rglob("*") if path.is_file()]
    assert SECRET not in shown and not any(SECRET.encode() in content for content in files)
    assert "Signature" not in " ".join([*told, str(caught.value), repr(caught.value), str(other.value)])
