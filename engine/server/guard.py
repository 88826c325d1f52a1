"""Who may ask: the Host header against rebound names, the Origin of web pages, and the key."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.server.errors import ApiError
from engine.server.origins import as_origin

if TYPE_CHECKING:
    from engine.server.settings import ServerSettings  # which asks here what is local

# By which containers reach this computer. They end in a name that no web page can own, so they cannot be pointed here by one.
CONTAINER_NAMES = ("host.docker.internal", "host.containers.internal")
OPEN_PATHS = ("/health",)  # what a watchdog may ask without the key


class Door:
    """Turns away web pages that were not allowed and, where ``local_only``, requests by any name but this computer's own.

    A page may send requests here without being able to read the answers: so an unknown Origin is refused, not just left without
    CORS headers. And a page may point a name of its own to 127.0.0.1: its requests then come with that name as Host.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, refused: Callable[[int], None]):
        """``refused`` counts an error by its status."""
        self._app, self._local_only, self._host = app, settings.local_only, settings.host.lower()
        self._origins, self._advice, self._refused = frozenset(settings.origins), settings.advice, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := self._refusal(Headers(scope=scope))) is not None:
            self._refused(error.status)
            await JSONResponse(error.body(), error.status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> ApiError | None:
        if self._local_only and not self._is_local(headers.get("host", "")):
            return ApiError(403, "This server answers to localhost and 127.0.0.1 only: use one of them.", code="host_not_allowed")
        origin = headers.get("origin")
        if origin is not None and "*" not in self._origins and origin not in self._origins:
            given = origin if as_origin(origin) else "'*', which allows every page"
            message = f"Web pages from {origin or 'nowhere'} are not allowed: {self._advice.format(page=given)}."
            return ApiError(403, message, code="origin_not_allowed")
        return None

    def _is_local(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        return name in ("localhost", self._host, *CONTAINER_NAMES) or is_loopback(name)


class KeyCheck:
    """Asks for ``Authorization: Bearer KEY``. Comparing takes the same time wherever the keys differ."""

    def __init__(self, app: ASGIApp, key: str, refused: Callable[[int], None]):
        self._app, self._key, self._refused = app, key.encode(), refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), self._key):
                message = "The API key is missing or wrong: send it as Authorization: Bearer KEY."
                error = ApiError(401, message, code="invalid_api_key")
                self._refused(error.status)
                await JSONResponse(error.body(), error.status, error.headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_loopback(address: str) -> bool:
    """Whether ``address`` is a number by which only this computer reaches itself."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
