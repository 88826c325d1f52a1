"""The window fixtures of the window tests serve the benchmarks too."""

from tests.gui.conftest import (
    client,
    keychain,
    loader,
    make_services,
    make_window,
    nothing_left_running,
    others,
    services,
    window,
)

__all__ = [
    "client",
    "keychain",
    "loader",
    "make_services",
    "make_window",
    "nothing_left_running",
    "others",
    "services",
    "window",
]
