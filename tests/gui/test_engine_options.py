"""The engine's options of a chat, in the window: asked for, said where they show, measured visibly, the same on both sides."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt

from app.core.compare_record import from_record, to_record
from app.core.meter_text import details_text
from app.core.options import ChatOptions
from app.services.engine_client import EngineState
from engine import SparsePrefill
from tests.gui.conftest import load, wait_ready


def ask(qtbot, window, mode: str = "dflash") -> None:
    window.do.set_mode(mode)
    window.composer.set_text("Explain rainbows")
    window.do.send()
    run = window.services.conversation.comparison
    qtbot.waitUntil(lambda: run.running is None and window.services.client.state is EngineState.READY, timeout=20_000)


@pytest.fixture
def options(window):
    return window.services.conversation.options


def test_what_is_set_in_the_pane_is_asked_of_the_engine(qtbot, window, options, loader):
    panel = window.options.panel
    window.options.set_open(True)
    qtbot.mouseClick(panel.exact, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.use_cache, Qt.MouseButton.LeftButton)
    panel.sparse.setFocus()
    qtbot.keyClick(panel.sparse, Qt.Key.Key_Down)
    panel.sparse.activated.emit(panel.sparse.currentIndex())
    assert (options.current.exact, options.current.use_cache, options.current.sparse) == (True, False, 0.5)
    ask(qtbot, window)
    asked = loader.engines[-1].requests[-1]
    assert (asked.exact, asked.use_cache, asked.sparse) == (True, False, SparsePrefill(0.5))
    assert window.services.conversation.chat.options["sparse"] == 0.5
    assert all(field.accessibleName() or field.text() for field in (panel.exact, panel.use_cache, panel.sparse))


def test_a_chat_read_in_part_is_called_approximate_beside_its_context(qtbot, window, options):
    context = window.composer.context
    qtbot.waitUntil(lambda: context.text() != "", timeout=5_000)
    assert "approximate" not in context.text().lower() + context.accessibleName().lower()
    options.set(ChatOptions(sparse=0.25))
    qtbot.waitUntil(lambda: context.text().endswith("tokens, approximate"), timeout=5_000)
    assert "about 25\u00a0% of a long prompt is read" in context.accessibleName() and "about 25" in context.toolTip()


def test_a_model_that_cannot_read_in_part_says_so_and_what_is_set_can_be_taken_back(qtbot, window, options, loader):
    loader.script.reads_in_part = False
    load(qtbot, window.services.client)
    panel = window.options.panel
    assert not panel.sparse.isEnabled() and "cannot read a prompt in part" in panel.sparse.toolTip()
    options.set(ChatOptions(sparse=0.5))
    assert panel.sparse.isEnabled()


def test_the_first_exact_answer_shows_how_far_measuring_is_and_stop_ends_it_at_once(qtbot, window, options, loader):
    loader.script.measuring_steps, loader.script.measuring_step_s = 400, 0.05
    options.set(ChatOptions(exact=True))
    window.composer.set_text("Explain rainbows")
    window.do.send()
    qtbot.waitUntil(lambda: window.meter.status.text().startswith("Measuring "), timeout=5_000)
    assert window.services.client.state is EngineState.PREFILL and "Stop ends it" in window.meter.status.toolTip()
    window.actions_by_id["stop"].trigger()
    wait_ready(qtbot, window.services.client, timeout=3_000)
    assert window.services.conversation.messages[-1].state == "stopped" and window.services.client.info.exact_widths is None
    assert not window.meter.status.text().startswith("Measuring")


def test_what_was_measured_is_known_to_the_window_from_then_on(qtbot, window, options, loader):
    loader.script.measuring_steps = 5
    options.set(ChatOptions(exact=True))
    ask(qtbot, window)
    assert window.services.client.info.exact_widths == (2, 3, 4)
    assert window.services.conversation.messages[-1].statistics["exact"] is True


def test_both_sides_are_asked_with_the_same_options_and_the_report_names_them(qtbot, window, options, loader):
    loader.script.measuring_steps = 5
    options.set(ChatOptions(exact=True, sparse=0.5, temperature=0.6, top_k=12, seed=None, use_cache=False))
    ask(qtbot, window, "compare")
    left, right = loader.engines[-1].requests[-2:]
    own = ("mode", "block_length")
    assert {name: getattr(left, name) for name in left.__slots__ if name not in own} == {
        name: getattr(right, name) for name in right.__slots__ if name not in own
    }
    comparison = window.services.conversation.comparison.comparison
    report = comparison.report_markdown()
    assert f"- Sampling: temperature 0.60, seed {left.seed}, at most 1,024 tokens, Top-k 12\n" in report
    assert "- Options: exact · approximate: about 50\u00a0% of a long prompt read\n" in report
    assert "bit-equal at every block length" in report, "measured while the second side ran"
    assert window.compare.options.text().startswith("Both: exact · approximate") and not window.compare.options.isHidden()
    back = from_record(json.loads(json.dumps(to_record(comparison))))
    assert (back.settings, back.options) == (comparison.settings, comparison.options) and back.report_markdown() == report


def test_a_comparison_with_the_defaults_says_so_and_shows_no_line_of_options(qtbot, window):
    ask(qtbot, window, "compare")
    assert window.compare.options.isHidden()
    assert "- Options: the defaults\n" in window.services.conversation.comparison.comparison.report_markdown()


def test_the_meter_names_the_options_of_the_answer_on_show(qtbot, window, options):
    ask(qtbot, window)
    feed = window.services.meter
    assert feed.snapshot().options == ""
    options.set(ChatOptions(exact=True, use_cache=False))
    ask(qtbot, window)
    assert feed.snapshot().options == "exact · nothing from the cache" and "exact" in window.meter.status.toolTip()
    assert "Options: exact · nothing from the cache\n" in details_text(feed.log, feed.snapshot(), window.services.client.info)
    window.do.new_chat()
    assert feed.snapshot().options == ""
