"""Tells before Qt starts whether a display can be opened: Qt itself aborts the process where its display does not answer."""

from __future__ import annotations

import os
import re
import socket
import sys

X11_FOLDER = "/tmp/.X11-unix"
X11_PORT = 6000
ANSWER_S = 2.0
_DISPLAY = re.compile(r"(?:(?P<protocol>[a-z0-9]+)/)?(?P<host>.*):(?P<number>\d+)(?:\.\d+)?")


def has_display() -> bool:
    """Whether a window can be shown here, as far as the environment and the X server's socket tell."""
    if not sys.platform.startswith("linux"):
        return True
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    if os.environ.get("WAYLAND_DISPLAY") or (platform and not platform.startswith("xcb")):
        return True
    return x_server_answers(os.environ.get("DISPLAY", ""))


def x_server_answers(display: str) -> bool:
    """Whether something listens where ``display`` ("[HOST]:N[.SCREEN]") points; whether it lets us in is not asked."""
    found = _DISPLAY.fullmatch(display)
    if found is None:
        return False
    host, number = found["host"], int(found["number"])
    if host in ("", "unix") or found["protocol"] == "unix":
        path = f"{X11_FOLDER}/X{number}"
        return any(_connects(socket.AF_UNIX, name) for name in (f"\0{path}", path))  # the first is Linux's own namespace
    try:
        with socket.create_connection((host.strip("[]"), X11_PORT + number), timeout=ANSWER_S):
            return True
    except (OSError, OverflowError):  # an overflow: no port has such a number
        return False


def _connects(family: socket.AddressFamily, address: str) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(ANSWER_S)
        try:
            client.connect(address)
        except OSError:
            return False
        return True
