"""The server's page: on and off, a port that is taken, keys, web pages, other computers, and the last requests."""

from __future__ import annotations

import socket
import time
from concurrent.futures import Future

import httpx2
import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from app.services.server import ServerState
from app.ui.settings_dialog import SettingsDialog
from tests.gui.serving import PATIENCE_S, QUESTION, answer_of, ask, client_of, free_port, switch_on

pytestmark = [pytest.mark.qt_log_ignore("This plugin does not support"), pytest.mark.usefixtures("keychain")]


def test_a_taken_port_is_said_in_the_window_and_on_the_page_with_one_that_is_free(qtbot, window, others):
    services = window.services
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        services.settings.update(server_port=port, server_at_start=True)
        services.catch_up()
        qtbot.waitUntil(lambda: services.server.problem is not None, timeout=20_000)
        assert f"Port {port} is in use" in window.banner.text and "--port" not in window.banner.text
        window.do.show_settings(server=True)
        page = window.findChild(SettingsDialog).server
        assert page.state.text() == window.banner.text and page.other_port.isVisible() and not page.on.isChecked()
        assert page.other_port.text() == window.banner.action.text()
        window.banner.action.click()
        qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)
    assert services.settings.current.server_port > port and window.banner.text == "" and page.on.isChecked()
    assert answer_of(qtbot, others.submit(ask(services))).choices


def test_the_page_switches_it_and_gives_what_other_programs_need(qtbot, window, others):
    services, port = window.services, free_port()
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    page.port.setValue(port)
    page.port.editingFinished.emit()
    page.on.click()
    qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)
    url = f"http://127.0.0.1:{port}/v1"
    assert page.url.text() == url and url in page.example.toPlainText() and not page.port.isEnabled()
    assert window.meter.server.isVisible() and window.meter.server.text() == f"127.0.0.1:{port}"
    page._copy_url()
    assert QApplication.clipboard().text() == url
    assert answer_of(qtbot, others.submit(ask(services))).choices
    qtbot.waitUntil(lambda: bool(page.requests.requests.rows) and page.requests.requests.rows[0][6] == "200", timeout=20_000)
    clock, request, program, read, written, rate, _status = page.requests.requests.rows[0]
    assert request == "POST /v1/chat/completions" and "OpenAI/Python" in program and (read, written) == ("8", "40") and rate
    assert time.strftime("%H:%M") <= clock or clock < "00:02"
    everything = " ".join(" ".join(row) for row in page.requests.requests.rows)
    assert "rainbow" not in everything.lower()
    page.on.click()
    qtbot.waitUntil(lambda: services.server.state is ServerState.OFF, timeout=20_000)
    assert page.port.isEnabled() and not window.meter.server.isVisible()


def test_the_commands_start_and_stop_it(qtbot, window):
    services = window.services
    services.settings.update(server_port=free_port())
    start, stop = (window.actions_by_id[name] for name in ("start_server", "stop_server"))
    assert start.isEnabled() and not stop.isEnabled()
    start.trigger()
    qtbot.waitUntil(lambda: services.server.state is ServerState.ON, timeout=20_000)
    assert stop.isEnabled() and not start.isEnabled()
    stop.trigger()
    qtbot.waitUntil(lambda: services.server.state is ServerState.OFF, timeout=20_000)
    assert start.isEnabled()


def test_a_key_lies_in_the_keychain_and_is_asked_for(qtbot, window, keychain, others):
    services = window.services
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    page.asks_key.click()
    qtbot.waitUntil(lambda: bool(keychain.kept), timeout=20_000)
    (key,) = keychain.kept.values()
    assert len(key) > 30 and key == services.server.key and key not in str(services.store.setting("settings"))
    switch_on(qtbot, services)
    assert answer_of(qtbot, others.submit(ask(services))).status_code == 401
    with client_of(services, api_key=key) as client:
        answer = others.submit(lambda: client.chat.completions.create(model="scripted", messages=QUESTION))
        assert answer_of(qtbot, answer).choices
    page._copy_example()
    assert f"Bearer {key}" in QApplication.clipboard().text() and key not in page.example.toPlainText()


def test_the_key_that_programs_have_is_asked_for_again_and_a_new_one_only_on_demand(qtbot, window, keychain):
    keychain.set_password("Slipstream", "server key", "sk-of-old")
    server = window.services.server
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    page.asks_key.click()
    qtbot.waitUntil(lambda: server.key == "sk-of-old", timeout=20_000)
    assert page.copy_key.isEnabled() and window.services.settings.current.server_key
    page.new_key.click()
    qtbot.waitUntil(lambda: "sk-of-old" not in keychain.kept.values(), timeout=20_000)
    assert server.key in keychain.kept.values()


def test_a_key_that_is_gone_from_the_keychain_is_never_done_without(qtbot, window):
    services = window.services
    services.settings.update(server_port=free_port(), server_key=True)
    services.server.start()
    qtbot.waitUntil(lambda: services.server.problem is not None, timeout=20_000)
    assert "make a new one" in window.banner.text and services.server.state is ServerState.OFF


def test_a_keychain_that_is_locked_is_said_and_the_key_holds_for_now(qtbot, window, keychain, others):
    keychain.locked = True
    services = window.services
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    page.new_key.click()
    qtbot.waitUntil(lambda: not services.server.key_kept, timeout=20_000)
    assert page.key_note.isVisible()
    switch_on(qtbot, services)
    assert answer_of(qtbot, others.submit(ask(services))).status_code == 401


def test_other_computers_may_ask_only_after_a_yes_and_with_a_key(qtbot, window, others):
    services = window.services
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    page.open.click()
    box = page.findChild(QMessageBox)
    assert "not encrypted" in box.text() and not services.settings.current.server_open and not page.open.isChecked()
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert not services.settings.current.server_open
    QApplication.processEvents()
    page.open.click()
    box = next(each for each in page.findChildren(QMessageBox) if each.isVisible())
    next(button for button in box.buttons() if button.text() == "Let them ask").click()
    current = services.settings.current
    assert current.server_open and current.server_key and not page.asks_key.isEnabled()
    qtbot.waitUntil(lambda: bool(services.server.key), timeout=20_000)
    services.settings.update(server_key=False)
    assert services.settings.current.server_key, "open without a key cannot be had"
    switch_on(qtbot, services)
    everywhere = f"http://127.0.0.1:{services.settings.current.server_port}/v1/models"
    bare = others.submit(lambda: httpx2.get(everywhere, timeout=PATIENCE_S, trust_env=False))
    assert answer_of(qtbot, bare).status_code == 401
    headers = {"Authorization": f"Bearer {services.server.key}", "Host": "this-computer.local"}
    named = others.submit(lambda: httpx2.get(everywhere, timeout=PATIENCE_S, trust_env=False, headers=headers))
    assert answer_of(qtbot, named).status_code == 200


def test_web_pages_ask_only_where_they_are_allowed(qtbot, window, others):
    services = window.services
    services.settings.update(server_origins="http://localhost:3000, example.org")
    window.do.show_settings(server=True)
    page = window.findChild(SettingsDialog).server
    assert page.origins_note.isVisible() and "example.org" in page.origins_note.text()
    switch_on(qtbot, services)

    def from_page(origin: str) -> Future:
        url, headers = f"{services.server.url}/models", {"Origin": origin}
        return others.submit(lambda: httpx2.get(url, headers=headers, timeout=PATIENCE_S, trust_env=False))

    assert answer_of(qtbot, from_page("http://localhost:3000")).status_code == 200
    refused = answer_of(qtbot, from_page("https://evil.example"))
    assert refused.status_code == 403 and "Slipstream's settings" in refused.json()["error"]["message"]
    rebound = others.submit(
        lambda: httpx2.get(f"{services.server.url}/models", headers={"Host": "evil.example"}, timeout=PATIENCE_S, trust_env=False)
    )
    assert answer_of(qtbot, rebound).json()["error"]["code"] == "host_not_allowed"
