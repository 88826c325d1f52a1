"""A display counts as one only if its server answers; Wayland and Qt's own platforms are taken at their word."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

import pytest

import app.__main__ as entry
from app import display

VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture(autouse=True)
def bare_linux(monkeypatch, tmp_path) -> None:
    """Linux without a display and with an empty folder for the X servers' sockets."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(display, "X11_FOLDER", str(tmp_path))


@pytest.fixture
def x_server(tmp_path) -> Iterator[socket.socket]:
    """Something that listens where display 7 is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "X7"))
        server.listen()
        yield server


def test_without_any_variable_there_is_no_display():
    assert not display.has_display()


@pytest.mark.parametrize("name", ["WAYLAND_DISPLAY", "QT_QPA_PLATFORM"])
def test_wayland_and_a_chosen_platform_are_believed(monkeypatch, name):
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv(name, "wayland-0")
    assert display.has_display()


@pytest.mark.parametrize("value", [":7", ":7.0", "unix:7"])
def test_a_display_whose_server_listens_is_one(monkeypatch, x_server, value):
    monkeypatch.setenv("DISPLAY", value)
    assert display.has_display()


@pytest.mark.parametrize("value", [":99", "unix:99.0", "nonsense", ":", "localhost:99999999"])
def test_a_display_whose_server_does_not_listen_is_none(monkeypatch, x_server, value):
    monkeypatch.setenv("DISPLAY", value)
    assert not display.has_display()


def test_the_socket_file_of_a_server_that_died_is_no_display(monkeypatch, x_server):
    x_server.close()
    assert os.path.exists(f"{display.X11_FOLDER}/X7")
    monkeypatch.setenv("DISPLAY", ":7")
    assert not display.has_display()


def test_a_display_of_another_host_is_asked_over_tcp(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(display, "X11_PORT", server.getsockname()[1] - 10)
        monkeypatch.setenv("DISPLAY", "127.0.0.1:10.0")
        assert display.has_display()
    assert not display.has_display()


def test_a_display_that_does_not_answer_gets_the_terminal_demo(monkeypatch):
    ran = []
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr(entry, "run_demo", lambda pair: ran.append(pair) or 0)
    monkeypatch.setattr(entry, "take_screenshots", lambda path, pair: 0)
    assert entry.main([]) == 0 and ran == ["starter"]
