"""Tokens, checking, mending, importing and deleting in the Models window."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import keyring
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from app.core.model_rows import ModelRow
from app.language import speak
from app.services.engine_client import EngineState
from engine.models import resolve_pair
from tests.engine.models import tiny_gguf
from tests.gui.conftest import wait_ready
from tests.gui.downloading import MODEL, MemoryKeychain, offer, wait_stage, weight_requests
from tests.gui.models_window import names, press, search, shown_actions, wait_row
from tests.remote_models import safetensors

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|propagateSizeHints\(\)|grabbing the keyboard)")


def test_a_gated_model_offers_its_page_and_the_token_field_and_goes_on_once_a_token_is_saved(
    qtbot, hub, window, manager, monkeypatch
):
    offer(hub)
    hub.repositories[MODEL].gated = True
    keychain, opened = MemoryKeychain(), []
    keyring.set_keyring(keychain)
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()) or True)
    search(qtbot, manager, "model")
    assert "asks for consent" in wait_row(qtbot, manager, MODEL).facts and manager.detail.token.isHidden()
    press(qtbot, manager, "get")
    wait_stage(qtbot, window.services.downloads, "failed")
    assert not manager.detail.token.isHidden() and "accept" in manager.detail.trouble_text.text()
    assert manager.detail.remedy.text() == "Open its page"
    manager.detail.remedy.click()
    assert opened == [f"{hub.address}/{MODEL}"]
    field = manager.detail.token.field
    assert field.echoMode() is field.EchoMode.Password
    qtbot.keyClicks(field, "hf_granted")
    manager.detail.token.save.click()
    wait_stage(qtbot, window.services.downloads, "done")
    assert list(keychain.kept.values()) == ["hf_granted"] and field.text() == ""


def test_the_kept_token_can_be_tested_and_removed(qtbot, hub, manager):
    keychain = MemoryKeychain()
    keyring.set_keyring(keychain)
    box, library = manager.detail.token, manager._library
    library.save_token("hf_valid", manager._show_token)
    qtbot.waitUntil(box.test.isEnabled, timeout=20_000)
    box.test.click()
    qtbot.waitUntil(lambda: "accepts the token" in manager.banner.text, timeout=20_000)
    hub.tokens.discard("hf_valid")
    box.test.click()
    qtbot.waitUntil(lambda: "not valid" in manager.banner.text, timeout=20_000)
    box.remove.click()
    qtbot.waitUntil(lambda: not box.remove.isEnabled(), timeout=20_000)
    assert keychain.kept == {}


def test_deleting_asks_with_the_size_and_gives_the_bytes_back(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    qtbot.waitUntil(lambda: "delete" in shown_actions(manager), timeout=20_000)
    total = manager.total.text()
    press(qtbot, manager, "delete")
    box = manager.findChild(QMessageBox)
    assert "1.6\u00a0MB" in box.text()
    next(button for button in box.buttons() if button.text() == "Delete").click()
    qtbot.waitUntil(lambda: "1.6\u00a0MB given back" in manager.banner.text, timeout=20_000)
    qtbot.waitUntil(lambda: not manager.list.rows.find(MODEL).isValid(), timeout=20_000)
    assert manager.total.text() != total
    with pytest.raises(Exception, match="not on this machine"):
        resolve_pair(MODEL)


def test_damage_is_found_told_and_mended(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    weights = resolve_pair(MODEL).target / "model.safetensors"
    sound = weights.read_bytes()
    weights.resolve().chmod(0o644)
    weights.resolve().write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    qtbot.waitUntil(lambda: "verify" in shown_actions(manager), timeout=20_000)
    press(qtbot, manager, "verify")
    qtbot.waitUntil(lambda: "damaged" in manager.banner.text, timeout=20_000)
    assert "model.safetensors" in manager.banner.text and manager._library.job is None
    with qtbot.waitSignal(window.services.downloads.finished, timeout=20_000):
        press(qtbot, manager, "repair")
        assert manager.banner.text == ""  # the damage is being mended
    assert manager.banner.text == "model is repaired."
    assert weights.read_bytes() == sound and len(weight_requests(hub)) == 2
    wait_row(qtbot, manager, MODEL)
    press(qtbot, manager, "verify")
    qtbot.waitUntil(lambda: manager.banner.text == "Every file is as it should be.", timeout=20_000)


def test_a_gguf_file_is_imported_with_progress_and_can_be_chatted_with(qtbot, window, manager, tmp_path):
    file = tmp_path / "Tiny Model.gguf"
    tiny_gguf.write_gguf(file)
    seen = []
    manager._library.job_changed.connect(lambda: seen.append(manager.job_label.text()))
    manager._library.import_gguf(file)
    assert not manager.job_bar.isHidden() and not manager.gguf.isEnabled()
    qtbot.waitUntil(lambda: "Imported as Tiny Model" in manager.banner.text, timeout=20_000)
    assert seen[0] == "Importing Tiny Model.gguf" and manager.job_bar.isHidden()
    qtbot.waitUntil(lambda: "Tiny Model" in names(manager), timeout=20_000)
    row = next(entry for entry in manager.list.rows.entries if isinstance(entry, ModelRow) and entry.name == "Tiny Model")
    assert row.actions[0] == "chat" and resolve_pair(row.loads).target.name == "Tiny Model"


def test_a_file_that_is_no_gguf_is_refused_in_words(qtbot, manager, tmp_path):
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"nothing")
    manager._library.import_gguf(file)
    qtbot.waitUntil(lambda: "broken.gguf" in manager.banner.text, timeout=20_000)
    assert manager._library.job is None


def test_what_is_wrong_with_a_gguf_file_is_said_in_the_language_of_the_window(qtbot, manager, tmp_path, qapp):
    (tmp_path / "text.gguf").write_text("not a model")
    speak("de", qapp)
    try:
        manager._library.import_gguf(tmp_path / "text.gguf")
        qtbot.waitUntil(lambda: "keine vollständige GGUF-Datei" in manager.banner.text, timeout=20_000)
    finally:
        speak("en", qapp)


def test_a_model_whose_files_vanished_leaves_the_list_when_it_is_checked(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    shutil.rmtree(resolve_pair(MODEL).target.parents[1])
    press(qtbot, manager, "verify")
    qtbot.waitUntil(lambda: not manager.list.rows.find(MODEL).isValid(), timeout=20_000)
    assert "not on this computer" in manager.banner.text


def test_an_opened_folder_stays_in_the_lists_until_it_is_removed_from_them(qtbot, hub, window, manager, tmp_path, monkeypatch):
    folder = tmp_path / "My Model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    (folder / "model.safetensors").write_bytes(safetensors(100))
    (folder / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_arguments: str(folder))
    manager.folder.click()
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == str(folder)
    wait_row(qtbot, manager, str(folder))
    assert shown_actions(manager) == {"chat", "options", "forget"}
    press(qtbot, manager, "forget")
    qtbot.waitUntil(lambda: "My Model" not in names(manager), timeout=20_000)
    assert folder.is_dir()


def test_a_folder_that_the_system_keeps_closed_is_listed_with_the_reason_and_hides_no_other(
    qtbot, hub, window, manager, tmp_path, monkeypatch
):
    closed, listed = tmp_path / "Closed", Path.iterdir
    closed.mkdir()

    def iterdir(folder):
        if folder == closed:
            raise PermissionError(errno.EACCES, "Operation not permitted", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)  # as a Mac does where its user said no
    window.services.library.keep_folder(str(closed))
    manager.tabs.setCurrentIndex(1)
    row = wait_row(qtbot, manager, str(closed))
    assert row.state == "Closed cannot be read (no permission)." and row.actions == ("forget",)
    assert manager.banner.text == ""


def test_checking_can_be_stopped(qtbot, hub, window, manager, monkeypatch):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    library = manager._library
    library.verify(MODEL)
    job = library.job
    manager.job_stop.click()
    assert library.job is None and job.cancel.is_set() and manager.job_label.isHidden()
    qtbot.wait(100)
    assert manager.banner.text == ""


def test_the_delete_key_and_the_menu_of_a_row_do_what_its_buttons_do(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    row = wait_row(qtbot, manager, MODEL)
    qtbot.waitUntil(lambda: "delete" in shown_actions(manager), timeout=20_000)
    qtbot.keyClick(manager.list, Qt.Key.Key_Delete)
    box = manager.findChild(QMessageBox)
    assert MODEL in box.text()
    box.reject()
    manager.list.menu_asked.emit(row, QPoint(0, 0))
    menu = manager.findChild(QMenu)
    assert [entry.text() for entry in menu.actions()] == ["Chat", "Options …", "Verify", "Repair", "Delete …"]
    menu.actions()[0].trigger()
    menu.close()
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == MODEL


def test_the_starter_cannot_be_deleted_by_key(qtbot, manager):
    wait_row(qtbot, manager, "starter")
    qtbot.keyClick(manager.list, Qt.Key.Key_Delete)
    assert manager.findChild(QMessageBox) is None


def test_a_model_that_is_loaded_is_unloaded_before_its_files_go(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    press(qtbot, manager, "chat")
    wait_ready(qtbot, window.services.client)
    press(qtbot, manager, "delete")
    box = manager.findChild(QMessageBox)
    assert "loaded now" in box.text()
    next(button for button in box.buttons() if button.text() == "Delete").click()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    qtbot.waitUntil(lambda: "given back" in manager.banner.text, timeout=20_000)
    window.services.client.load("scripted")
    wait_ready(qtbot, window.services.client)
    offer(hub, "org/other")
    window.services.downloads.get("org/other")
    wait_stage(qtbot, window.services.downloads, "done", "org/other")
    wait_row(qtbot, manager, "org/other")
    manager._library.delete("org/other")
    qtbot.waitUntil(lambda: manager._library.job is None, timeout=20_000)
    assert window.services.client.state is EngineState.READY  # another model's files are no reason to unload
