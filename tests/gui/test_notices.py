"""Notices go when their cause is gone, and the meter never shows what belongs to another chat."""

from __future__ import annotations

from dataclasses import replace

from app.services.engine_client import EngineState
from app.ui import banner as banner_module
from app.ui.banner import Banner
from tests.gui.conftest import load, wait_ready


def fail_to_load(qtbot, window, loader) -> None:
    """Leaves the window without a model."""
    loader.script.load_error = RuntimeError("broken")
    window.do.load_model("scripted")
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.NO_MODEL, timeout=20_000)
    loader.script.load_error = None


def test_a_load_that_works_ends_the_notice_of_the_one_that_failed(qtbot, window, loader):
    fail_to_load(qtbot, window, loader)
    assert window.banner.action.text() == "Load again" and window.banner.text != ""
    window.do.new_chat()
    assert window.banner.text != ""  # another chat changes nothing about it
    window.do.load_model("scripted")
    wait_ready(qtbot, window.services.client)
    assert window.banner.text == ""


def test_the_notice_that_the_engine_is_not_ready_goes_when_it_is(qtbot, make_window, services, loader):
    loader.script.load_s = 0.3
    window = make_window(services)
    services.client.load("scripted")
    window.composer.set_text("Early")
    window.do.send()
    assert "not ready" in window.banner.text
    wait_ready(qtbot, services.client)
    assert window.banner.text == "" and window.composer.text() == "Early"


def test_the_notice_of_a_cut_answer_stays_with_its_chat(qtbot, make_services, make_window):
    first = make_services()
    other, cut = first.store.create_chat("Other"), first.store.create_chat("Cut")
    first.store.add_message(cut.id, "user", "Go", "sent")
    first.store.add_message(cut.id, "assistant", "Half", "streaming")
    first.store.set_setting("last_chat", cut.id)
    assert first.shutdown()
    window = make_window(make_services())
    assert "cut short" in window.banner.text
    load(qtbot, window.services.client)
    assert "cut short" in window.banner.text  # the engine has nothing to do with it
    window.do.open_chat(other.id)
    assert window.banner.text == ""


def test_a_prompt_that_is_too_long_is_forgotten_in_another_chat(qtbot, window, loader):
    loader.script.context_length = 20
    load(qtbot, window.services.client)
    window.composer.set_text("word " * 100)
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert "shorten it" in window.banner.text
    window.do.new_chat()
    assert window.banner.text == ""


def ask(qtbot, window, text: str) -> None:
    window.composer.set_text(text)
    window.do.send()
    wait_ready(qtbot, window.services.client)


def shown(window) -> dict[str, str]:
    return {key: label.text() for key, label in window.meter.figures.items()}


def test_the_meter_starts_afresh_in_another_chat(qtbot, window):
    empty = shown(window)
    ask(qtbot, window, "Explain rainbows")
    assert shown(window) != empty and window.meter.status.text() == "DFlash"
    window.do.new_chat()
    assert shown(window) == empty and window.meter.status.text() == "Ready"
    assert window.services.meter.snapshot().ribbon == ()


def test_the_meter_keeps_a_running_answer_while_another_chat_is_opened(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 60.0, 400
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.meter.snapshot().tokens > 4, timeout=20_000)
    window.do.new_chat()
    assert window.services.meter.snapshot().tokens > 4
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert window.meter.status.text() == "Stopped"


def test_the_meter_says_that_there_is_no_model_after_a_failed_load(qtbot, window, loader):
    empty = shown(window)
    ask(qtbot, window, "Explain rainbows")
    fail_to_load(qtbot, window, loader)
    assert window.meter.status.text() == "No model" and shown(window) == empty
    load(qtbot, window.services.client)
    assert window.meter.status.text() == "Ready"


def test_the_meter_is_ready_after_a_prompt_that_is_too_long(qtbot, window, loader):
    loader.script.context_length = 20
    load(qtbot, window.services.client)
    ask(qtbot, window, "word " * 100)
    assert window.meter.status.text() == "Ready"


def test_what_is_missing_from_a_models_files_stands_beside_its_name(qtbot, window):
    wait_ready(qtbot, window.services.client)
    info = replace(window.services.client.info, notices=("This model has no chat template.",))
    window.models.show_state(EngineState.READY, info)
    assert window.models.box.toolTip().endswith("tokens · This model has no chat template.")


def test_what_is_missing_from_a_models_files_is_told_once_when_it_is_loaded(qtbot, window, loader):
    client, notice = window.services.client, "This model has no chat template, so it is given the bare text."
    wait_ready(qtbot, client)
    assert window.banner.text == ""
    loader.script.notices = (notice,)
    load(qtbot, client)
    assert window.banner.text == notice
    window.banner.hide()
    load(qtbot, client)  # the same again, as after a draft was exchanged
    assert window.banner.text == ""
    loader.script.notices = ("Another thing is missing.",)
    window.banner.show_message("The last run ended in a fault.")
    load(qtbot, client)
    assert window.banner.text == "The last run ended in a fault.", "what stands there is not pushed away"
    window.banner.hide()
    load(qtbot, client)
    assert window.banner.text == "Another thing is missing."


def test_what_went_wrong_and_what_can_be_undone_is_said_aloud_and_no_progress(qtbot, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(banner_module, "announce", lambda _widget, text: said.append(text))
    banner = Banner()
    qtbot.addWidget(banner)
    banner.show_message("The disk is full: free some space.")
    banner.show_notice("Exporting: 1 of 500 chats")
    banner.show_notice("Chat deleted.", "Undo", lambda: None)
    assert said == ["The disk is full: free some space.", "Chat deleted."]


def test_how_far_something_is_leaves_time_to_read_a_message_and_to_press_its_button(qtbot, monkeypatch):
    banner = Banner()
    qtbot.addWidget(banner)

    def go_on() -> str:
        banner.show_progress("Importing: 50 %", "Cancel", lambda: None)
        return banner.text

    assert go_on() == "Importing: 50 %"
    banner.show_notice("Chat deleted.", "Undo", lambda: None)
    assert go_on() == "Chat deleted."
    banner.show_message("Another thing goes on already.")
    assert go_on() == "Another thing goes on already."
    monkeypatch.setattr(banner_module, "READ_S", 0.0)
    assert go_on() == "Importing: 50 %"
    banner.settle("over")
    assert banner.text == ""
