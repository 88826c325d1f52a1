"""Looking for updates: only where the user agreed or asked, from a real server, and never more than telling."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bundle import feed
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPlainTextEdit

from app.core.updates import FEED_LIMIT, Source
from app.services.updates import EVERY_S, LAST, NO_FEED
from app.ui.update_dialog import UpdateDialog
from engine import __version__

SECRET, PUBLIC = feed.keygen()
FIELDS = {"version": "99.0", "minimum_macos": "14.0", "published": "2026-11-30", "notes": "Much faster.", "sha256": "00"}
SIZE_WARNING = "This plugin does not support"


class Server(ThreadingHTTPServer):
    """Answers with ``body`` and counts who asked."""

    def __init__(self) -> None:
        self.body, self.status, self.asked = b"", 200, []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(dict(self.headers))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # the app may stop reading
            self.wfile.write(self.server.body)

    def log_message(self, *_arguments: object) -> None:
        """Not into the tests' output."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.body = offer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def offer(**changes: str) -> bytes:
    return feed.sign(json.dumps({**FIELDS, "page": "https://slipstream.example/get", **changes}), SECRET)


@pytest.fixture
def updates(services, server):
    services.updates.source = Source(f"http://127.0.0.1:{server.server_port}/feed.json", PUBLIC)
    return services.updates


def test_nothing_is_asked_before_the_user_agrees(qtbot, services, updates, server):
    assert not services.settings.current.check_updates and not updates.look_if_due()
    qtbot.wait(100)
    assert server.asked == []


def test_once_agreed_it_looks_once_a_day(qtbot, services, updates, server):
    services.settings.update(check_updates=True)
    with qtbot.waitSignal(updates.found, timeout=20_000) as found:
        assert updates.look_if_due(now=lambda: 1_000_000.0)
    assert found.args[0].version == "99.0"
    assert not updates.look_if_due(now=lambda: 1_000_000.0 + EVERY_S - 1)
    services.store.set_setting(LAST, 9e12)  # the clock was set back
    with qtbot.waitSignal(updates.found, timeout=20_000):
        assert updates.look_if_due(now=lambda: 2_000_000.0)
    assert len(server.asked) == 2


def test_the_question_names_the_version_and_nothing_of_the_user(qtbot, updates, server):
    with qtbot.waitSignal(updates.found, timeout=20_000):
        updates.look()
    (headers,) = server.asked
    assert headers["User-Agent"] == f"Slipstream/{__version__}" and "Cookie" not in headers and "Referer" not in headers


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"<html>", 200, "cannot be read"),
        (offer().replace(b"99.0", b"98.0"), 200, "not signed"),
        (b"", 404, "does not answer"),
        (b" " * (FEED_LIMIT * 8), 200, "try again later"),
    ],
)
def test_what_is_no_trusted_feed_is_told_in_one_line(qtbot, updates, server, body, status, said):
    server.body, server.status = body, status
    with qtbot.waitSignal(updates.failed, timeout=20_000) as failed:
        updates.look()
    assert said in failed.args[0] and "\n" not in failed.args[0]


def test_an_unsafe_address_and_a_build_without_a_feed_are_not_asked(qtbot, updates, server):
    for source, said in ((Source("http://slipstream.example/feed", PUBLIC), "not secure"), (Source("", ""), NO_FEED)):
        updates.source = source
        with qtbot.waitSignal(updates.failed, timeout=20_000) as failed:
            updates.look()
        assert said in failed.args[0]
    assert server.asked == []


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """What would have been opened in the browser."""
    urls: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: urls.append(url.toString()) or True)
    return urls


@pytest.mark.qt_log_ignore(SIZE_WARNING)
def test_the_user_sees_the_notes_and_the_page_opens_on_request_only(qtbot, window, updates, opened):
    with qtbot.waitSignal(updates.found, timeout=20_000):
        window.actions_by_id["look_for_updates"].trigger()
    dialog = window.findChild(UpdateDialog)
    assert dialog.findChild(QPlainTextEdit).toPlainText() == "Much faster." and opened == []
    dialog.open_button.click()
    assert opened == ["https://slipstream.example/get"] and not dialog.isVisible()


@pytest.mark.qt_log_ignore(SIZE_WARNING)
def test_a_daily_look_shows_a_notice_and_no_dialog(qtbot, window, updates, services):
    services.settings.update(check_updates=True)
    with qtbot.waitSignal(updates.found, timeout=20_000):
        updates.look_if_due()
    assert "99.0 is out" in window.banner.text and window.findChild(UpdateDialog) is None


def test_the_same_or_an_older_version_is_no_news_and_a_failed_daily_look_is_silent(qtbot, window, updates, server, services):
    server.body = offer(version=__version__)
    with qtbot.waitSignal(updates.current, timeout=20_000):
        window.actions_by_id["look_for_updates"].trigger()
    assert "newest version" in window.banner.text
    window.banner.hide()
    services.settings.update(check_updates=True)
    server.status = 500
    with qtbot.waitSignal(updates.failed, timeout=20_000):
        updates.look_if_due()
    assert window.banner.isHidden()


@pytest.mark.qt_log_ignore(SIZE_WARNING)
def test_the_settings_window_asks_for_agreement(qtbot, window, services):
    from app.ui.settings_dialog import SettingsDialog

    window.do.show_settings()
    box = window.findChild(SettingsDialog).privacy.updates
    assert not box.isChecked()
    box.click()
    assert services.settings.current.check_updates is True


@pytest.mark.parametrize("value", [1, "yes", "false", None])
def test_only_a_clear_yes_counts_as_agreement(value):
    from app.services.settings import parse

    assert parse({"check_updates": value}).check_updates is False and parse({"check_updates": True}).check_updates is True
