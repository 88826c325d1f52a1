"""The window fixtures of the window tests serve the benchmarks too."""

from tests.gui.conftest import client, loader, make_services, make_window, nothing_left_running, services, window

__all__ = ["client", "loader", "make_services", "make_window", "nothing_left_running", "services", "window"]
