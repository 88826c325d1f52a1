"""Loading, unloading and switching models as the user meets them; the chat and what is being written stay."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.services.engine_client import EngineState
from app.services.wiring import Services
from app.ui.load_report import LoadReportDialog
from app.worker import load_engine
from engine import GenerationRequest, ModelError
from engine.models import PairEntry, fit
from tests.gui.conftest import delete_later, load, wait_ready
from tests.remote_models import safetensors

OFFSCREEN_DIALOG = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")


def wait_empty(qtbot, client) -> None:
    """Waits until no model is loaded."""
    qtbot.waitUntil(lambda: client.state is EngineState.NO_MODEL, timeout=20_000)


def test_unloading_closes_the_engine_and_load_brings_the_same_model_back(qtbot, window, loader):
    client = window.services.client
    window.actions_by_id["unload_model"].trigger()
    wait_empty(qtbot, client)
    assert loader.engines[0].closed and client.info is None
    assert window.models.state.text() == "No model" and not window.models.load.isHidden() and window.models.details.isHidden()
    assert not window.actions_by_id["unload_model"].isEnabled()
    qtbot.mouseClick(window.models.load, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, client)
    assert client.pair == "scripted" and window.models.load.isHidden()


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_unloading_while_an_answer_is_written_keeps_what_had_arrived(qtbot, window, loader, phase):
    loader.script.rate, loader.script.tokens = 20.0, 1_000
    loader.script.prefill_s = 30.0 if phase == "prefill" else 0.0
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wanted = EngineState.PREFILL if phase == "prefill" else EngineState.DECODING
    qtbot.waitUntil(lambda: window.services.client.state is wanted, timeout=20_000)
    if phase == "decode":
        qtbot.waitUntil(lambda: bool(window.services.conversation.active.text), timeout=20_000)
    window.do.unload_model()
    wait_empty(qtbot, window.services.client)
    answer = window.services.conversation.messages[-1]
    assert answer.state == "stopped" and loader.engines[0].closed
    assert answer.content[:1] == ("A" if phase == "decode" else "")


def test_switching_the_model_keeps_the_chat_and_its_draft(qtbot, window, loader):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    window.composer.set_text("And what about")
    chat, shown = window.services.conversation.chat, window.transcript.count
    window.do.load_model("another")
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.chat == chat and window.transcript.count == shown
    assert window.composer.text() == "And what about"
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert [m.role for m in loader.engines[-1].requests[-1].messages] == ["user", "assistant", "user"]


def test_a_failed_load_offers_the_last_model_that_worked(qtbot, window, loader):
    loader.script.load_error = ModelError("This model needs 40 GB and the machine has 16: choose a smaller one.")
    window.do.load_model("folder/too-large")
    wait_empty(qtbot, window.services.client)
    assert "needs 40\u00a0GB" in window.banner.text and window.banner.action.text() == "Load scripted"
    loader.script.load_error = None
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == "scripted" and window.banner.text == ""


def test_only_a_model_that_could_be_loaded_is_remembered_for_the_next_start(qtbot, window, loader):
    assert window.services.settings.current.pair == "scripted"
    loader.script.load_error = ModelError("The weights are damaged: verify the model.")
    window.do.load_model("folder/broken")
    wait_empty(qtbot, window.services.client)
    assert window.services.settings.current.pair == "scripted"


def test_a_cancelled_load_can_be_taken_up_again_from_the_header(qtbot, window, loader):
    loader.script.load_s = 30.0
    window.do.load_model("another")
    qtbot.waitUntil(lambda: window.models.state.text() == "Loading", timeout=20_000)
    window.actions_by_id["stop"].trigger()
    wait_empty(qtbot, window.services.client)
    loader.script.load_s = 0.0
    qtbot.mouseClick(window.models.load, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == "another"


def test_choosing_the_shown_model_loads_it_where_none_is_loaded_and_else_changes_nothing(qtbot, window):
    asked = []
    window.models.chosen.connect(asked.append)
    index = window.models.box.currentIndex()
    window.models.box.activated.emit(index)
    assert asked == []
    window.do.unload_model()
    wait_empty(qtbot, window.services.client)
    window.models.box.activated.emit(index)
    assert asked == ["scripted"]
    wait_ready(qtbot, window.services.client)


def test_the_picker_lists_what_can_be_loaded(window):
    entries = [
        PairEntry("starter", "Starter", "", "not set up", 0),
        PairEntry("a", "Model A", "", "ready", 1),
        PairEntry("b", "Model B", "", "incomplete", 0),
        PairEntry("c", "Model C", "", "not set up", 0),
    ]
    window.models.fill(entries, "b")
    shown = [window.models.box.itemText(row) for row in range(3)]
    assert shown == ["Starter (not set up)", "Model A", "Model B (incomplete)"]
    assert window.models.box.findData("c") < 0


@OFFSCREEN_DIALOG
def test_the_load_report_says_context_draft_and_memory_and_is_one_click_away(qtbot, window):
    qtbot.mouseClick(window.models.details, Qt.MouseButton.LeftButton)
    dialog = window.findChild(LoadReportDialog)
    dialog.copy.click()
    text = QGuiApplication.clipboard().text()
    assert "Context: 8,192 tokens" in text and "Draft: scripted draft, up to 4 tokens a block" in text
    assert "Weights in memory: 1.0\u00a0MB" in text
    dialog.close()


@OFFSCREEN_DIALOG
def test_the_load_report_says_why_nothing_is_guessed_ahead(qtbot, window, loader):
    loader.script.has_draft = False
    load(qtbot, window.services.client)
    window.do.show_load_report()
    dialog = window.findChild(LoadReportDialog)
    dialog.copy.click()
    assert "Draft: None, so nothing is guessed ahead by a draft: This model has no draft." in QGuiApplication.clipboard().text()
    dialog.close()


def test_an_unload_ends_a_request_that_waits_behind_it(qtbot, client, loader):
    load(qtbot, client)
    loader.script.prefill_s = 30.0
    ended = []
    client.ended.connect(lambda request_id, failure: ended.append((request_id, failure)))
    first = client.generate(GenerationRequest.of("Hello"))
    client.unload()
    wait_empty(qtbot, client)
    assert ended == [(first, None)]


def test_sending_without_a_model_keeps_the_text_and_offers_to_load_one(qtbot, window, loader):
    window.do.unload_model()
    wait_empty(qtbot, window.services.client)
    window.composer.set_text("Still here")
    window.do.send()
    assert "No model is loaded" in window.banner.text and window.composer.text() == "Still here"
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert window.banner.text == "" and window.composer.text() == "Still here"


def test_a_model_that_the_memory_cannot_hold_is_refused_in_words_before_it_is_read(
    qtbot, starter, tmp_path, make_window, monkeypatch
):
    services = Services(tmp_path, load_engine)
    window = make_window(services)
    monkeypatch.setattr(fit, "machine_memory", lambda: 100_000_000)
    services.client.load("starter")
    wait_empty(qtbot, services.client)
    assert "memory" in window.banner.text and "0.1\u00a0GB" in window.banner.text
    assert window.banner.action.text() == "Load again" and not window.models.load.isHidden()
    window.hide()
    delete_later(window)
    assert services.shutdown(10.0)
    delete_later(services)


def test_where_the_first_load_fails_the_starter_is_offered(qtbot, make_window, services, loader):
    window = make_window(services)
    loader.script.load_error = ModelError("org/gone is not on this machine: fetch it again.")
    services.client.load("org/gone")
    wait_empty(qtbot, services.client)
    assert window.banner.action.text() == "Load Starter (SmolLM2 135M)"
    loader.script.load_error = None
    qtbot.mouseClick(window.banner.action, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, services.client)
    assert services.client.pair == "starter"


def test_an_open_menu_of_models_is_refilled_only_where_something_changed(window):
    rows = [PairEntry("scripted", "Scripted pair", "", "ready", 1), PairEntry("a", "A" * 120, "", "ready", 1)]
    window.models.fill(rows, "scripted")
    model, changes = window.models.box.model(), []
    model.rowsRemoved.connect(lambda *_change: changes.append("removed"))
    window.models.fill(list(rows), "scripted")
    assert changes == []
    window.models.fill(rows[:1], "scripted")
    assert changes


def test_a_long_name_leaves_the_chat_s_title_its_room(qtbot, window):
    window.resize(720, 480)
    window.models.fill([PairEntry("a", "organisation/" + "Very-Long-Name-" * 12, "", "ready", 1)], "a")
    qtbot.wait(50)
    assert window.width() == 720 and window.title.width() >= 80


def test_a_model_that_is_refused_before_it_is_read_leaves_the_loaded_one_in_use(qtbot, window, loader):
    client, engine = window.services.client, loader.engines[0]
    loader.script.refusal = ModelError("Huge needs about 40 GB of memory: choose a smaller model.")
    window.do.load_model("huge")
    qtbot.waitUntil(lambda: "40\u00a0GB" in window.banner.text, timeout=20_000)
    assert client.state is EngineState.READY and client.pair == "scripted" and not engine.closed
    assert window.banner.action.isHidden() and window.models.box.currentData() == "scripted"
    assert window.services.settings.current.pair == "scripted" and window.meter.status.text() == "Ready"
    window.composer.set_text("Still there?")
    window.do.send()
    wait_ready(qtbot, client)
    assert engine.requests and window.services.conversation.messages[-1].state == "done"


def test_a_fault_while_a_model_is_checked_leaves_the_loaded_one_in_use(qtbot, window, loader):
    loader.script.refusal = RuntimeError("a config nobody thought of")
    window.do.load_model("odd")
    qtbot.waitUntil(lambda: "RuntimeError" in window.banner.text, timeout=20_000)
    client = window.services.client
    assert client.state is EngineState.READY and client.pair == "scripted" and not loader.engines[0].closed


def test_the_real_loader_refuses_what_is_not_here_and_what_cannot_fit_before_it_gives_anything_up(starter, monkeypatch):
    load_engine.check("starter")
    with pytest.raises(ModelError, match="no-such"):
        load_engine.check("org/no-such")
    monkeypatch.setattr(fit, "machine_memory", lambda: 100_000_000)
    with pytest.raises(ModelError, match="memory"):
        load_engine.check("starter")


@pytest.mark.parametrize("damage", ["config", "weights", "index"])
def test_the_real_loader_refuses_damaged_files_before_it_gives_anything_up(tmp_path, damage):
    (tmp_path / "config.json").write_text("{" if damage == "config" else "{}")
    weights = safetensors(100)
    (tmp_path / "model.safetensors").write_bytes(weights[:-1] if damage == "weights" else weights)
    if damage == "index":
        (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    with pytest.raises(ModelError, match="download the model again"):
        load_engine.check(str(tmp_path))


def test_the_figures_of_an_answer_go_with_the_model_that_gave_them(qtbot, window):
    window.composer.set_text("Explain rainbows")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    assert window.meter.figures["tokens"].text() != "– tok/cycle" and window.services.meter.log.cycles
    window.do.unload_model()
    wait_empty(qtbot, window.services.client)
    assert window.meter.figures["tokens"].text() == "– tok/cycle" and window.meter.status.text() == "No model"
    assert not window.services.meter.log.cycles
