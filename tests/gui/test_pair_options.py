"""How a pair is kept in memory: chosen in the window, kept for each pair, used at its load, named where it counts."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.core.engine_words import engine_words
from app.core.model_rows import model_rows
from app.core.pair_options import PairOptions
from app.services.engine_client import EngineState
from app.services.library import Possible
from app.services.wiring import Services
from app.ui.models.options_dialog import PairOptionsDialog
from app.worker import load_engine
from engine import LoadOptions, ModelError, NotEnoughMemory
from engine.models import fits
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target
from tests.gui.conftest import delete_later, load, wait_ready
from tests.gui.models_window import press, wait_row

WIDE = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


@pytest.fixture
def dialog(window):
    """Opened for the loaded pair by its command."""
    window.actions_by_id["pair_options"].trigger()
    found = window.findChild(PairOptionsDialog)
    yield found
    if found in window.findChildren(PairOptionsDialog):
        found.close()


def choose(box, bits: int | None) -> None:
    box.setCurrentIndex(box.findData(bits))


def test_what_is_chosen_is_used_at_once_shown_beside_the_name_and_kept(qtbot, window, dialog, loader, make_services, tmp_path):
    choose(dialog.kv, 8)
    choose(dialog.draft, 4)
    qtbot.mouseClick(dialog.load, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(loader.engines) == 2 and window.services.client.state is EngineState.READY, timeout=5_000)
    assert loader.options == LoadOptions(learned=True, kv_bits=8, draft_bits=4)
    assert window.models.options.text() == "8/4 bit" and not window.models.options.isHidden()
    assert window.models.options.toolTip() == "keys and values 8 bit · draft 4 bit"
    window.retire()
    assert window.services.shutdown(5.0)
    again = make_services()
    assert again.pair_options.of("scripted") == PairOptions(8, 4) and again.pair_options.of("other") == PairOptions()


def test_a_choice_kept_for_later_loads_nothing_now_and_counts_then(qtbot, window, dialog, loader):
    choose(dialog.kv, 4)
    qtbot.mouseClick(dialog.keep, Qt.MouseButton.LeftButton)
    assert len(loader.engines) == 1 and window.models.options.isHidden()
    window.do.reload_model()
    wait_ready(qtbot, window.services.client)
    assert loader.options.kv_bits == 4
    window.do.show_pair_options()
    assert "Loaded now with: keys and values 4 bit" in window.findChild(PairOptionsDialog).now.text()


def test_escape_changes_nothing(qtbot, window, dialog, loader):
    choose(dialog.kv, 8)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert window.services.pair_options.of("scripted") == PairOptions() and len(loader.engines) == 1


def test_one_load_without_the_memory_check_warns_and_is_not_kept(qtbot, window, dialog, loader):
    assert not dialog.warning.isVisibleTo(dialog)
    dialog.anyway.setChecked(True)
    assert dialog.warning.isVisibleTo(dialog) and "save your work" in dialog.warning.text() and not dialog.keep.isEnabled()
    qtbot.mouseClick(dialog.load, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert loader.options.memory_bytes == 0
    load(qtbot, window.services.client)
    assert loader.options.memory_bytes is None


def test_what_the_files_refuse_is_disabled_with_its_reason_and_can_be_taken_back_where_it_is_set(window, qtbot):
    heads, no_draft = "Its heads of size 48 do not divide into groups of 32.", "There is no draft to keep in fewer bits."
    reasons = {"kv_bits": heads, "draft_bits": no_draft}
    for options, enabled in ((PairOptions(), False), (PairOptions(8, 8), True)):
        dialog = PairOptionsDialog("Tiny", options, None, window)
        dialog.show_possible(Possible(reasons))
        assert (dialog.kv.isEnabled(), dialog.draft.isEnabled()) == (enabled, enabled)
        assert dialog.kv_words.text() == heads == dialog.kv.accessibleDescription()
        assert dialog.draft_words.text() == no_draft
        dialog.close()


def test_a_real_pair_s_files_say_what_it_can_have_and_whether_it_fits_with_it(qtbot, window, tmp_path):
    target, draft = write_target(tmp_path / "target", **WIDE), write_draft(tmp_path / "draft", target_config(**WIDE))
    for pair, can_draft in ((f"{target}+{draft}", True), (str(target), False)):
        window.model_manager.show_options(pair, "Tiny")
        dialog = window.findChild(PairOptionsDialog)
        qtbot.waitUntil(lambda dialog=dialog: dialog.fit.text() != "", timeout=10_000)
        assert dialog.kv.isEnabled() and dialog.draft.isEnabled() == can_draft
        context, found = window.services.library.context, dialog._possible.fits
        for bits in (8, None, 4):
            choose(dialog.kv, bits)
            assert found[bits] == fits(pair, context, kv_bits=bits) and dialog.fit.text() == engine_words(found[bits].words)
        assert found[4].needed_bytes < found[8].needed_bytes < found[None].needed_bytes
        dialog.close()
        qtbot.waitUntil(lambda: window.findChild(PairOptionsDialog) is None, timeout=5_000)


def test_the_list_of_models_names_the_options_and_judges_the_fit_with_them(qtbot, starter, hub, window, tmp_path):
    folder = str(copy_tokenizer(starter.target, write_target(tmp_path / "Tiny", **WIDE)))
    library = window.services.library
    library.keep_folder(folder)
    qtbot.waitUntil(lambda: folder in library.shelf.fits, timeout=10_000)
    before = library.shelf.fits[folder].needed_bytes
    window.services.pair_options.keep(folder, PairOptions(kv_bits=4))
    qtbot.waitUntil(lambda: library.shelf.options_of(folder).kv_bits == 4, timeout=10_000)
    (row,) = [row for row in model_rows(library.shelf, []) if row.id == folder]
    assert "keys and values 4 bit" in row.facts and row.fit.needed_bytes < before


def test_the_models_window_leads_to_the_options_of_a_model(qtbot, starter, hub, window, tmp_path):
    folder = str(copy_tokenizer(starter.target, write_target(tmp_path / "Tiny", **WIDE)))
    window.services.library.keep_folder(folder)
    window.do.show_models()
    manager = window.model_manager.window
    wait_row(qtbot, manager, folder)
    press(qtbot, manager, "options")
    dialog = manager.findChild(PairOptionsDialog)
    qtbot.waitUntil(lambda: dialog.fit.text() != "", timeout=10_000)
    choose(dialog.kv, 8)
    qtbot.mouseClick(dialog.keep, Qt.MouseButton.LeftButton)
    assert window.services.pair_options.of(folder) == PairOptions(kv_bits=8)


def test_every_field_can_be_reached_and_has_a_name(qtbot, dialog):
    wanted, reached = {dialog.kv, dialog.draft, dialog.anyway, dialog.load}, set()
    dialog.kv.setFocus()
    for _ in range(8):
        reached.add(dialog.focusWidget())
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    assert wanted <= reached
    assert [field.accessibleName() for field in (dialog.kv, dialog.draft)] == ["Keys and values", "Draft"]


def test_a_load_that_fails_with_options_names_them_and_leads_to_them(qtbot, window, loader):
    services = window.services
    services.pair_options.keep("other", PairOptions(kv_bits=8))
    loader.script.refusal = ModelError(
        "The cache of 'gemma3' models cannot be kept in 8 bits, only that of plain attention models can: load it without kv_bits."
    )
    window.do.load_model("other")
    wait_ready(qtbot, services.client)
    assert "Keys and values of 'gemma3' models" in window.banner.text
    assert "choose full ones. It was to be loaded with: keys and values 8 bit." in window.banner.text
    qtbot.mouseClick(window.banner.second, Qt.MouseButton.LeftButton)
    dialog = window.findChild(PairOptionsDialog)
    assert dialog.kv.currentData() == 8
    loader.script.refusal = None
    choose(dialog.kv, None)
    qtbot.mouseClick(dialog.load, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: services.client.info is not None and services.client.info.id == "other", timeout=5_000)


def test_a_model_that_is_too_large_can_be_loaded_all_the_same(qtbot, window, loader):
    loader.script.refusal = NotEnoughMemory("Large", 4096, 40 * 10**9, 16 * 10**9)
    window.do.load_model("large")
    wait_ready(qtbot, window.services.client)
    assert "needs about 40.0" in window.banner.text and "It was to be loaded" not in window.banner.text
    qtbot.mouseClick(window.banner.second, Qt.MouseButton.LeftButton)
    loader.script.refusal = None
    dialog = window.findChild(PairOptionsDialog)
    dialog.anyway.setChecked(True)
    qtbot.mouseClick(dialog.load, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: loader.options.memory_bytes == 0, timeout=5_000)
    wait_ready(qtbot, window.services.client)
    assert window.services.client.pair == "large"


def test_a_real_pair_is_loaded_with_its_options_and_stays_where_those_of_another_are_refused(
    qtbot, starter, tmp_path, make_window
):
    wide = WIDE | {"vocab_size": 49152}
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **wide))
    odd = copy_tokenizer(starter.target, write_target(tmp_path / "odd", **wide | {"head_dim": 48}))
    pair = f"{target}+{write_draft(tmp_path / 'draft', target_config(**wide), intermediate_size=96)}"
    services = Services(tmp_path, load_engine)
    services.pair_options.keep(pair, PairOptions(8, 4))
    services.pair_options.keep(str(odd), PairOptions(kv_bits=4))
    window = make_window(services)
    for name in (pair, str(odd)):
        services.client.load(name)
        qtbot.waitUntil(lambda: not services.client.busy, timeout=60_000)
        info = services.client.info
        assert (services.client.pair, info.kv_bits, info.draft_bits, info.reads_in_part) == (pair, 8, 4, False)
    assert "heads of size 48" in window.banner.text and "keys and values 4 bit" in window.banner.text
    assert services.client.last_pair == pair and services.settings.current.pair == pair
    window.hide()
    delete_later(window)
    assert services.shutdown(10.0)
    delete_later(services)


@pytest.mark.parametrize("kept", [None, [], "x", {"scripted": None}, {"scripted": {"kv_bits": 3, "draft_bits": "8", "warp": 9}}])
def test_absurd_options_in_the_settings_are_the_defaults(qtbot, tmp_path, make_services, kept):
    services: Services = make_services()
    services.store.set_setting("pair_options", kept)
    assert services.shutdown(5.0)
    again = make_services()
    assert again.pair_options.of("scripted") == PairOptions()
    assert again.pair_options.load_options("scripted") == LoadOptions(learned=True)
