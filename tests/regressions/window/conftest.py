"""Reports about the window use what the window's own tests use."""

from __future__ import annotations

from tests.gui.conftest import client, loader, make_services, make_window, nothing_left_running, services, window

__all__ = ["client", "loader", "make_services", "make_window", "nothing_left_running", "services", "window"]
