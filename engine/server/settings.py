"""How a server is set up, and the socket it listens on."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from engine.errors import SlipstreamError
from engine.server.guard import is_loopback

REASONS = {
    errno.EADDRINUSE: "is in use: stop the other program, or choose another port with --port",
    errno.EACCES: "needs more rights: choose a port above 1023 with --port",
    errno.EADDRNOTAVAIL: "is no address of this computer: choose another with --host",
}
COMMAND_ADVICE = "start the server with --allow-origin {page}"
WINDOW_ADVICE = "allow {page} in Slipstream's settings, under Server"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """``asked_model`` is what --model said, ``name`` what clients see instead of the pair's id. ``origins``: web pages that may
    ask; ``advice``: how a client is told to have its ``{page}`` allowed. ``max_waiting`` requests may wait beside the one being
    answered. ``local_only``: bound to a loopback address."""

    host: str
    local_only: bool
    asked_model: str | None = None
    name: str | None = None
    api_key: str | None = None
    origins: tuple[str, ...] = ()
    max_waiting: int = 32
    exact: bool = False
    advice: str = COMMAND_ADVICE


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the first address of ``host``, not listening yet. Raises ``SlipstreamError``."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise SlipstreamError(f"The host {host!r} is unknown: choose another with --host, such as 127.0.0.1.") from error
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise unusable(host, port, error) from error
    return bound


def listen(bound: socket.socket) -> None:
    """Begins to listen. Raises ``SlipstreamError`` where another program was faster."""
    host, port = bound.getsockname()[:2]
    try:
        bound.listen()
    except OSError as error:
        raise unusable(host, port, error) from error


def unusable(host: str, port: int, error: OSError) -> SlipstreamError:
    reason = REASONS.get(error.errno or 0, f"cannot be used ({error.strerror}): choose another port with --port")
    return SlipstreamError(f"Port {port} on {host} {reason}.")


def is_local(bound: socket.socket) -> bool:
    """Whether only this computer reaches the socket."""
    return is_loopback(bound.getsockname()[0])


def address(bound: socket.socket) -> str:
    """The beginning of the server's URLs."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
