"""What tests of downloads share: a model on the test hub, and waiting for a stage."""

from __future__ import annotations

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from app.core.downloads import Stage
from app.services.downloads import Downloads
from tests.hub_server import HubServer, Seen
from tests.remote_models import add_model

MODEL = "org/model"
SIZE = 1_600_000  # several of the pieces in which bytes reach the disk


def offer(hub: HubServer, name: str = MODEL, size: int = SIZE, bytes_per_s: float | None = None, held: float | None = None) -> None:
    """Puts a model of one weight file on the hub, which sends it at ``bytes_per_s``, and no more than the share ``held`` of it."""
    add_model(hub, name, (size,))
    hub.bytes_per_s, hub.held = bytes_per_s, held


def wait_stage(qtbot, downloads: Downloads, stage: Stage, name: str = MODEL, timeout: int = 20_000) -> None:
    """Waits until the download of ``name`` is at ``stage``."""

    def there() -> bool:
        found = downloads.find(name)
        return found is not None and found.stage == stage

    qtbot.waitUntil(there, timeout=timeout)


def wait_bytes(qtbot, downloads: Downloads, count: int, name: str = MODEL) -> None:
    """Waits until ``count`` bytes of ``name`` are there."""

    def enough() -> bool:
        found = downloads.find(name)
        return found is not None and found.done >= count

    qtbot.waitUntil(enough, timeout=20_000)


def weight_requests(hub: HubServer, name: str = MODEL) -> list[Seen]:
    """The requests for the bytes of the weights, in order."""
    return [seen for seen in hub.requests_for("model.safetensors", "store") if name.split("/")[1] in seen.path]


class MemoryKeychain(KeyringBackend):
    """A keychain that lasts as long as the test."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not there")
