"""The Models window as a user meets it, over a real hub server on this machine."""

from __future__ import annotations

import keyring
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QPushButton

from app.core.model_rows import ModelRow
from app.services.engine_client import EngineState
from engine.models import resolve_pair
from tests.engine.models import tiny_gguf
from tests.gui.conftest import wait_ready
from tests.gui.downloading import MODEL, SIZE, MemoryKeychain, offer, wait_bytes, wait_stage, weight_requests
from tests.hub_server import Fault

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|propagateSizeHints\(\)|grabbing the keyboard)")


@pytest.fixture
def manager(hub, window, qtbot):
    """The Models window over an empty hub, opened and filled."""
    with qtbot.waitSignal(window.services.library.changed, timeout=10_000):
        window.actions_by_id["models"].trigger()
    return window.model_manager.window


def names(manager) -> list[str]:
    """Headings and rows as they stand in the list."""
    return [entry.name if isinstance(entry, ModelRow) else entry for entry in manager.list.rows.entries]


def wait_row(qtbot, manager, row_id: str, timeout: int = 10_000) -> ModelRow:
    """Waits until there is a row, selects it and returns it."""
    qtbot.waitUntil(lambda: manager.list.rows.find(row_id).isValid(), timeout=timeout)
    manager.list.select(row_id)
    return manager.list.current()


def press(qtbot, manager, action: str) -> None:
    """Clicks a button of the detail pane, which has to be there."""
    button = manager.detail.buttons[action]
    assert not button.isHidden() and button.isEnabled(), f"{action} is not offered"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def shown_actions(manager) -> set[str]:
    return {action for action, button in manager.detail.buttons.items() if not button.isHidden()}


def search(qtbot, manager, text: str) -> None:
    """Types a search and waits for the hub's answer."""
    manager.search.clear()
    qtbot.keyClicks(manager.search, text)
    library = manager._library
    qtbot.waitUntil(lambda: not manager._settle.isActive() and not library.searching, timeout=10_000)


def test_a_model_is_found_fetched_and_chatted_with(qtbot, hub, window, manager):
    offer(hub, bytes_per_s=1_200_000)
    search(qtbot, manager, "model")
    assert wait_row(qtbot, manager, MODEL).draft == "No draft: runs with lookup."
    press(qtbot, manager, "get")
    wait_bytes(qtbot, window.services.downloads, SIZE // 3)
    manager.fill()
    assert "of 1.6 MB" in manager.detail.state.text() and not manager.detail.bar.isHidden()
    assert shown_actions(manager) == {"pause", "cancel"}
    press(qtbot, manager, "pause")
    assert shown_actions(manager) == {"resume", "cancel"} and "paused" in manager.detail.state.text()
    press(qtbot, manager, "resume")
    wait_stage(qtbot, window.services.downloads, "done")
    qtbot.waitUntil(lambda: "chat" in shown_actions(manager), timeout=5_000)
    press(qtbot, manager, "chat")
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == MODEL
    assert window.models.box.currentText() == MODEL


def test_a_model_can_be_fetched_with_the_keyboard_alone(qtbot, hub, window, manager):
    offer(hub)
    search(qtbot, manager, "model")
    wait_row(qtbot, manager, MODEL)
    manager.list.setFocus()
    qtbot.keyClick(manager.list, Qt.Key.Key_Return)
    wait_stage(qtbot, window.services.downloads, "done")
    qtbot.waitUntil(lambda: "chat" in shown_actions(manager), timeout=5_000)
    qtbot.keyClick(manager.list, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == MODEL
    manager.banner.show_message("Done", "Action")
    for button in manager.findChildren(QPushButton):
        assert button.isHidden() or (button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.text())


def test_typing_asks_the_hub_once_it_rests(qtbot, hub, manager):
    offer(hub)
    before = len(hub.requests_for("search="))
    qtbot.keyClicks(manager.search, "model", delay=20)
    qtbot.waitUntil(lambda: manager.list.rows.find(MODEL).isValid(), timeout=5_000)
    asked = hub.requests_for("search=")[before:]
    assert len(asked) == 1 and "search=model" in asked[0].path


def test_a_late_answer_of_an_earlier_search_is_dropped(qtbot, hub, manager):
    offer(hub, "org/first")
    offer(hub, "org/second")
    hub.api_faults.append(Fault("stall"))
    library = manager._library
    library.search("first")
    qtbot.waitUntil(lambda: bool(hub.requests_for("search=first")), timeout=5_000)
    library.search("second")
    qtbot.waitUntil(lambda: bool(library.shelf.found), timeout=5_000)
    hub.stopping.set()  # lets go of the one that stalls; it is asked again by itself
    hub.stopping.clear()
    qtbot.waitUntil(lambda: len(hub.requests_for("search=first")) > 1 and not library._background.busy, timeout=5_000)
    qtbot.wait(50)
    assert {model.repository for model in library.shelf.found} == {"org/second"}


def test_without_a_network_the_search_says_so_and_the_rest_works(qtbot, hub, manager, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    search(qtbot, manager, "starter")
    qtbot.waitUntil(lambda: any("HF_HUB_OFFLINE" in name for name in names(manager)), timeout=5_000)
    assert "Starter (SmolLM2 135M)" in names(manager)


def test_a_search_without_a_hit_says_so(qtbot, manager):
    search(qtbot, manager, "nothing like this")
    assert names(manager) == ["On the hub: nothing found"]


def test_whether_a_model_fits_follows_the_chosen_context(qtbot, hub, manager):
    def words(tokens: int) -> dict[str, str]:
        index = manager.context.findData(tokens)
        manager.context.setCurrentIndex(index)
        with qtbot.waitSignal(manager._library.changed, timeout=5_000):
            manager.context.activated.emit(index)
        return {name: fit.words for name, fit in manager._library.shelf.fits.items()}

    short, long = words(4_096), words(262_144)
    assert short.keys() == long.keys() and any(short[name] != long[name] for name in short)
    assert any("4,096" in text for text in short.values())


def test_every_row_is_readable_by_voiceover(qtbot, hub, manager):
    offer(hub)
    search(qtbot, manager, "model")
    wait_row(qtbot, manager, MODEL)
    model = manager.list.rows
    for place, entry in enumerate(model.entries):
        spoken = model.index(place).data(Qt.ItemDataRole.AccessibleTextRole)
        assert spoken and (entry == spoken if isinstance(entry, str) else entry.name in spoken)
    row = manager.list.current()
    assert row.facts[0] in row.spoken and row.fit.words in row.spoken
    assert all(not model.flags(model.index(n)) for n, entry in enumerate(model.entries) if isinstance(entry, str))


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
    qtbot.waitUntil(box.test.isEnabled, timeout=5_000)
    box.test.click()
    qtbot.waitUntil(lambda: "accepts the token" in manager.banner.text, timeout=5_000)
    hub.tokens.discard("hf_valid")
    box.test.click()
    qtbot.waitUntil(lambda: "not valid" in manager.banner.text, timeout=5_000)
    box.remove.click()
    qtbot.waitUntil(lambda: not box.remove.isEnabled(), timeout=5_000)
    assert keychain.kept == {}


def test_deleting_asks_with_the_size_and_gives_the_bytes_back(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    wait_row(qtbot, manager, MODEL)
    qtbot.waitUntil(lambda: "delete" in shown_actions(manager), timeout=5_000)
    total = manager.total.text()
    press(qtbot, manager, "delete")
    box = manager.findChild(QMessageBox)
    assert "1.6 MB" in box.text()
    next(button for button in box.buttons() if button.text() == "Delete").click()
    qtbot.waitUntil(lambda: "1.6 MB given back" in manager.banner.text, timeout=5_000)
    qtbot.waitUntil(lambda: not manager.list.rows.find(MODEL).isValid(), timeout=5_000)
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
    qtbot.waitUntil(lambda: "verify" in shown_actions(manager), timeout=5_000)
    press(qtbot, manager, "verify")
    qtbot.waitUntil(lambda: "damaged" in manager.banner.text, timeout=5_000)
    assert "model.safetensors" in manager.banner.text and manager._library.job is None
    with qtbot.waitSignal(window.services.downloads.finished, timeout=10_000):
        press(qtbot, manager, "repair")
    assert weights.read_bytes() == sound and len(weight_requests(hub)) == 2
    wait_row(qtbot, manager, MODEL)
    press(qtbot, manager, "verify")
    qtbot.waitUntil(lambda: manager.banner.text == "Every file is as it should be.", timeout=5_000)


def test_a_gguf_file_is_imported_with_progress_and_can_be_chatted_with(qtbot, window, manager, tmp_path):
    file = tmp_path / "Tiny Model.gguf"
    tiny_gguf.write_gguf(file)
    seen = []
    manager._library.job_changed.connect(lambda: seen.append(manager.job_label.text()))
    manager._library.import_gguf(file)
    assert not manager.job_bar.isHidden() and not manager.gguf.isEnabled()
    qtbot.waitUntil(lambda: "Imported as Tiny Model" in manager.banner.text, timeout=10_000)
    assert seen[0] == "Importing Tiny Model.gguf" and manager.job_bar.isHidden()
    qtbot.waitUntil(lambda: "Tiny Model" in names(manager), timeout=5_000)
    row = next(entry for entry in manager.list.rows.entries if isinstance(entry, ModelRow) and entry.name == "Tiny Model")
    assert row.actions[0] == "chat" and resolve_pair(row.loads).target.name == "Tiny Model"


def test_a_file_that_is_no_gguf_is_refused_in_words(qtbot, manager, tmp_path):
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"nothing")
    manager._library.import_gguf(file)
    qtbot.waitUntil(lambda: "broken.gguf" in manager.banner.text, timeout=10_000)
    assert manager._library.job is None


def test_the_selected_row_stays_selected_while_others_come_and_go(qtbot, hub, window, manager):
    for name in ("org/model-a", "org/model-b"):
        offer(hub, name, bytes_per_s=1_200_000)
    search(qtbot, manager, "model")
    wait_row(qtbot, manager, "org/model-b")
    window.services.downloads.get("org/model-a")
    wait_stage(qtbot, window.services.downloads, "running", "org/model-a")
    assert manager.list.current().id == "org/model-b"
    wait_stage(qtbot, window.services.downloads, "done", "org/model-a")
    assert manager.list.current().id == "org/model-b"


def test_several_are_shown_at_once_with_their_sum(qtbot, hub, window, manager):
    for name in ("org/first", "org/second"):
        offer(hub, name, bytes_per_s=500_000)
        window.services.downloads.get(name)
    downloads = window.services.downloads
    qtbot.waitUntil(lambda: [download.stage for download in downloads.all()] == ["running", "running"], timeout=5_000)
    assert manager.total.text().startswith("2 downloads, ") and "of 3.2 MB" in manager.total.text()
    assert names(manager)[0] == "Being fetched"
    for download in downloads.all():
        downloads.cancel(download.id)
    qtbot.waitUntil(lambda: not downloads.all(), timeout=5_000)
    assert "download" not in manager.total.text()


def test_the_tab_of_this_computer_lists_sources_sizes_and_the_sum(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    manager.tabs.setCurrentIndex(1)
    row = wait_row(qtbot, manager, MODEL)
    assert row.facts == ("1.6 MB", "hub cache")
    assert f"{manager.total.text().split(' · ')[-1]}" == "1.6 MB on disk"


def test_a_load_asked_for_by_chat_ends_a_running_answer_and_keeps_the_chat(qtbot, hub, window, manager, loader):
    window.composer.set_text("Explain rainbows")
    loader.script.rate, loader.script.tokens = 20.0, 1_000
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=5_000)
    chat = window.services.conversation.chat
    manager.chat_asked.emit("another")
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == "another" and window.services.conversation.chat.id == chat.id
    assert window.services.conversation.messages[-1].state == "stopped"


def test_an_opened_folder_stays_in_the_lists_until_it_is_removed_from_them(qtbot, hub, window, manager, tmp_path, monkeypatch):
    folder = tmp_path / "My Model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_arguments: str(folder))
    manager.folder.click()
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == str(folder)
    wait_row(qtbot, manager, str(folder))
    assert shown_actions(manager) == {"chat", "forget"}
    press(qtbot, manager, "forget")
    qtbot.waitUntil(lambda: "My Model" not in names(manager), timeout=5_000)
    assert folder.is_dir()


@pytest.mark.parametrize("fails", [False, True])
def test_the_main_window_tells_the_end_of_a_download_where_the_models_window_is_closed(qtbot, hub, window, manager, fails):
    offer(hub)
    hub.repositories[MODEL].gated = fails
    manager.close()
    window.services.downloads.get(MODEL)
    qtbot.waitUntil(lambda: window.banner.text != "", timeout=10_000)
    if fails:
        assert "accept its terms" in window.banner.text
        qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
        assert manager.isVisible() and manager.list.current().id == MODEL
    else:
        assert window.banner.text == "model is here, checked and ready."
        qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
        wait_ready(qtbot, window.services.client)
        assert window.services.client.pair == MODEL


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


DRAFT_CONFIG = b'{"architectures": ["DFlashDraftModel"], "hidden_size": 64, "vocab_size": 500, "num_target_layers": 4}'


@pytest.mark.parametrize("remembered", [True, False])
def test_a_target_is_chatted_with_together_with_the_draft_that_came_with_it(qtbot, hub, window, manager, remembered):
    offer(hub)
    offer(hub, "other/model-DFlash")
    hub.repositories["other/model-DFlash"].files["config.json"] = DRAFT_CONFIG
    with qtbot.waitSignal(window.services.downloads.finished, timeout=10_000):
        window.services.downloads.get(MODEL)
    if not remembered:  # as for models that another program has fetched
        window.services.store.set_setting("fetched_drafts", {})
        manager._library.refresh()
    row = wait_row(qtbot, manager, MODEL)
    assert row.draft == "Comes with its draft other/model-DFlash."
    press(qtbot, manager, "chat")
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == f"{MODEL}+other/model-DFlash"
    assert window.models.box.currentText() == MODEL


def test_a_draft_of_other_numbers_is_not_taken_for_the_target_s(qtbot, hub, window, manager):
    offer(hub)
    offer(hub, "other/model-DFlash")
    hub.repositories["other/model-DFlash"].files["config.json"] = DRAFT_CONFIG.replace(b"64", b"96")
    for name in (MODEL, "other/model-DFlash"):
        window.services.downloads.get(name)
        wait_stage(qtbot, window.services.downloads, "done", name)
    assert wait_row(qtbot, manager, MODEL).draft == "No draft: runs with lookup."


def test_the_delete_key_and_the_menu_of_a_row_do_what_its_buttons_do(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    row = wait_row(qtbot, manager, MODEL)
    qtbot.waitUntil(lambda: "delete" in shown_actions(manager), timeout=5_000)
    qtbot.keyClick(manager.list, Qt.Key.Key_Delete)
    box = manager.findChild(QMessageBox)
    assert MODEL in box.text()
    box.reject()
    manager.list.menu_asked.emit(row, QPoint(0, 0))
    menu = manager.findChild(QMenu)
    assert [entry.text() for entry in menu.actions()] == ["Chat", "Verify", "Repair", "Delete …"]
    menu.actions()[0].trigger()
    menu.close()
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == MODEL


def test_the_starter_cannot_be_deleted_by_key(qtbot, manager):
    wait_row(qtbot, manager, "starter")
    qtbot.keyClick(manager.list, Qt.Key.Key_Delete)
    assert manager.findChild(QMessageBox) is None


def test_escape_clears_the_search_before_it_closes_the_window(qtbot, manager):
    qtbot.keyClicks(manager.search, "x")
    qtbot.keyClick(manager.search, Qt.Key.Key_Escape)
    assert manager.search.text() == "" and manager.isVisible()
    qtbot.keyClick(manager.search, Qt.Key.Key_Escape)
    assert not manager.isVisible()


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
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=5_000)
    qtbot.waitUntil(lambda: "given back" in manager.banner.text, timeout=5_000)
    window.services.client.load("scripted")
    wait_ready(qtbot, window.services.client)
    offer(hub, "org/other")
    window.services.downloads.get("org/other")
    wait_stage(qtbot, window.services.downloads, "done", "org/other")
    wait_row(qtbot, manager, "org/other")
    manager._library.delete("org/other")
    qtbot.waitUntil(lambda: manager._library.job is None, timeout=5_000)
    assert window.services.client.state is EngineState.READY  # another model's files are no reason to unload
