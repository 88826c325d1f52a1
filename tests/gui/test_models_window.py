"""The Models window as a user meets it, over a real hub server on this machine."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.core.words import unbroken
from app.services.engine_client import EngineState
from tests.gui.conftest import wait_ready
from tests.gui.downloading import MODEL, SIZE, offer, wait_bytes, wait_stage
from tests.gui.models_window import names, press, search, shown_actions, wait_row
from tests.hub_server import Fault

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|propagateSizeHints\(\)|grabbing the keyboard)")


def test_a_model_is_found_fetched_and_chatted_with(qtbot, hub, window, manager):
    offer(hub, held=0.75)
    search(qtbot, manager, "model")
    assert wait_row(qtbot, manager, MODEL).draft == "No draft: runs with lookup."
    press(qtbot, manager, "get")
    wait_bytes(qtbot, window.services.downloads, SIZE // 3)
    manager.fill()
    assert "of 1.6\u00a0MB" in manager.detail.state.text() and not manager.detail.bar.isHidden()
    assert shown_actions(manager) == {"pause", "cancel"}
    press(qtbot, manager, "pause")
    assert shown_actions(manager) == {"resume", "cancel"} and "paused" in manager.detail.state.text()
    hub.held = None
    press(qtbot, manager, "resume")
    wait_stage(qtbot, window.services.downloads, "done")
    qtbot.waitUntil(lambda: "chat" in shown_actions(manager), timeout=20_000)
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
    qtbot.waitUntil(lambda: "chat" in shown_actions(manager), timeout=20_000)
    qtbot.keyClick(manager.list, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == MODEL
    manager.banner.show_message("Done", "Action")
    for button in manager.findChildren(QPushButton):
        assert button.isHidden() or (button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.text())


def test_typing_asks_the_hub_once_it_rests(qtbot, hub, manager):
    offer(hub)
    before = len(hub.requests_for("search="))
    manager._settle.setInterval(60_000)
    qtbot.keyClicks(manager.search, "model", delay=20)
    assert manager._settle.isActive() and len(hub.requests_for("search=")) == before
    manager._settle.setInterval(0)
    qtbot.waitUntil(lambda: manager.list.rows.find(MODEL).isValid(), timeout=20_000)
    asked = hub.requests_for("search=")[before:]
    assert len(asked) == 1 and "search=model" in asked[0].path


def test_a_late_answer_of_an_earlier_search_is_dropped(qtbot, hub, manager):
    offer(hub, "org/first")
    offer(hub, "org/second")
    hub.api_faults.append(Fault("stall"))
    library = manager._library
    library.search("first")
    qtbot.waitUntil(lambda: bool(hub.requests_for("search=first")), timeout=20_000)
    library.search("second")
    qtbot.waitUntil(lambda: bool(library.shelf.found), timeout=20_000)
    hub.stopping.set()  # lets go of the one that stalls; it is asked again by itself
    hub.stopping.clear()
    qtbot.waitUntil(lambda: len(hub.requests_for("search=first")) > 1 and not library._background.busy, timeout=20_000)
    qtbot.wait(50)
    assert {model.repository for model in library.shelf.found} == {"org/second"}


def test_without_a_network_the_search_says_so_and_the_rest_works(qtbot, hub, manager, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    search(qtbot, manager, "starter")
    qtbot.waitUntil(lambda: any("HF_HUB_OFFLINE" in name for name in names(manager)), timeout=20_000)
    assert "Starter (SmolLM2 135M)" in names(manager)


def test_a_search_without_a_hit_says_so(qtbot, manager):
    search(qtbot, manager, "nothing like this")
    assert names(manager) == ["On the hub: nothing found"]


def test_what_the_hub_found_is_not_called_nothing_while_it_is_fetched(qtbot, hub, manager):
    offer(hub, held=0.75)
    search(qtbot, manager, "model")
    wait_row(qtbot, manager, MODEL)
    press(qtbot, manager, "get")
    assert names(manager) == ["Being fetched", MODEL]


def test_whether_a_model_fits_follows_the_chosen_context(qtbot, hub, manager):
    def words(tokens: int) -> dict[str, str]:
        index = manager.context.findData(tokens)
        manager.context.setCurrentIndex(index)
        with qtbot.waitSignal(manager._library.changed, timeout=20_000):
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
    assert row.facts[0] in row.spoken and unbroken(row.fit.words) in row.spoken
    assert all(not model.flags(model.index(n)) for n, entry in enumerate(model.entries) if isinstance(entry, str))


def test_the_selected_row_stays_selected_while_others_come_and_go(qtbot, hub, window, manager):
    for name in ("org/model-a", "org/model-b"):
        offer(hub, name, held=0.75)
    search(qtbot, manager, "model")
    wait_row(qtbot, manager, "org/model-b")
    window.services.downloads.get("org/model-a")
    wait_stage(qtbot, window.services.downloads, "running", "org/model-a")
    assert manager.list.current().id == "org/model-b"
    hub.held = None
    wait_stage(qtbot, window.services.downloads, "done", "org/model-a")
    assert manager.list.current().id == "org/model-b"


def test_several_are_shown_at_once_with_their_sum(qtbot, hub, window, manager):
    for name in ("org/first", "org/second"):
        offer(hub, name, held=0.75)
        window.services.downloads.get(name)
    downloads = window.services.downloads
    qtbot.waitUntil(lambda: [download.stage for download in downloads.all()] == ["running", "running"], timeout=20_000)
    assert manager.total.text().startswith("2 downloads, ") and "of 3.2\u00a0MB" in manager.total.text()
    assert names(manager)[0] == "Being fetched"
    for download in downloads.all():
        downloads.cancel(download.id)
    qtbot.waitUntil(lambda: not downloads.all(), timeout=20_000)
    assert "download" not in manager.total.text()


def test_the_tab_of_this_computer_lists_sources_sizes_and_the_sum(qtbot, hub, window, manager):
    offer(hub)
    window.services.downloads.get(MODEL)
    wait_stage(qtbot, window.services.downloads, "done")
    manager.tabs.setCurrentIndex(1)
    row = wait_row(qtbot, manager, MODEL)
    assert row.facts == ("1.6\u00a0MB", "hub cache")
    assert f"{manager.total.text().split(' · ')[-1]}" == "1.6\u00a0MB on disk"


def test_a_load_asked_for_by_chat_ends_a_running_answer_and_keeps_the_chat(qtbot, hub, window, manager, loader):
    window.composer.set_text("Explain rainbows")
    loader.script.rate, loader.script.tokens = 20.0, 1_000
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    chat = window.services.conversation.chat
    manager.chat_asked.emit("another")
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == "another" and window.services.conversation.chat.id == chat.id
    assert window.services.conversation.messages[-1].state == "stopped"


@pytest.mark.parametrize("fails", [False, True])
def test_the_main_window_tells_the_end_of_a_download_where_the_models_window_is_closed(qtbot, hub, window, manager, fails):
    offer(hub)
    hub.repositories[MODEL].gated = fails
    manager.close()
    window.services.downloads.get(MODEL)
    qtbot.waitUntil(lambda: window.banner.text != "", timeout=20_000)
    if fails:
        assert "accept its terms" in window.banner.text
        qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
        assert manager.isVisible() and manager.list.current().id == MODEL
    else:
        assert window.banner.text == "model is here, checked and ready."
        qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
        wait_ready(qtbot, window.services.client)
        assert window.services.client.pair == MODEL


DRAFT_CONFIG = b'{"architectures": ["DFlashDraftModel"], "hidden_size": 64, "vocab_size": 500, "num_target_layers": 4}'


@pytest.mark.parametrize("remembered", [True, False])
def test_a_target_is_chatted_with_together_with_the_draft_that_came_with_it(qtbot, hub, window, manager, remembered):
    offer(hub)
    offer(hub, "other/model-DFlash")
    hub.repositories["other/model-DFlash"].files["config.json"] = DRAFT_CONFIG
    with qtbot.waitSignal(window.services.downloads.finished, timeout=20_000):
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


def test_escape_clears_the_search_before_it_closes_the_window(qtbot, manager):
    qtbot.keyClicks(manager.search, "x")
    qtbot.keyClick(manager.search, Qt.Key.Key_Escape)
    assert manager.search.text() == "" and manager.isVisible()
    qtbot.keyClick(manager.search, Qt.Key.Key_Escape)
    assert not manager.isVisible()
