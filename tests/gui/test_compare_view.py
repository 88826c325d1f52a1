"""Side by side: both texts live, a replay on one clock, the verdict and the report."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.core.compare_record import from_record, to_record
from app.services.engine_client import EngineState
from app.ui.comparison_list import ComparisonList
from tests.gui.conftest import load, wait_ready

OFFSCREEN_DIALOG = pytest.mark.qt_log_ignore("This plugin does not support")


def compare(qtbot, window, prompt: str = "Explain rainbows") -> None:
    """Runs both modes on ``prompt``."""
    window.do.set_mode("compare")
    window.composer.set_text(prompt)
    window.do.send()
    run = window.services.conversation.comparison
    qtbot.waitUntil(lambda: run.comparison is not None and run.running is None, timeout=20_000)
    wait_ready(qtbot, window.services.client)


def test_both_texts_both_rates_and_the_verdict_are_shown(qtbot, window, loader):
    loader.script.rate = 400.0
    compare(qtbot, window)
    view, comparison = window.compare, window.services.conversation.comparison.comparison
    assert window.stack.currentWidget() is view
    for name, arm in (("left", comparison.left), ("right", comparison.right)):
        assert view.panes[name].body.text == arm.finished.text
        assert view.panes[name].rate.text() == f"{arm.finished.statistics.decode_tok_s:,.0f}\u00a0tok/s"
        assert view.panes[name].clock.text() == f"{arm.duration_s:.1f}\u00a0s"
    assert view.verdict.text() == comparison.verdict_line()
    assert view.verdict.text().endswith("identical, 40 tokens")
    rates = [arm.finished.statistics.decode_tok_s for arm in (comparison.left, comparison.right)]
    assert comparison.speedup == pytest.approx(rates[1] / rates[0]) and f"{comparison.speedup:.1f}" in view.verdict.text()


def test_differing_texts_are_named_with_the_first_token_that_differs(qtbot, window, loader):
    loader.script.text_by_mode = {"dflash": "A rainbow forms when light enters a pond. "}
    compare(qtbot, window)
    verdict = window.services.conversation.comparison.comparison.verdict
    assert not verdict.identical and verdict.first_difference == 4
    assert "differs from token 4" in window.compare.verdict.text()
    assert "sunlight" in window.compare.verdict.text() and "light" in window.compare.verdict.text()


def test_text_is_shown_while_an_arm_runs(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 40.0, 200
    window.do.set_mode("compare")
    window.composer.set_text("Explain rainbows")
    window.do.send()
    panes = window.compare.panes
    qtbot.waitUntil(lambda: len(panes["left"].body.text) > 20, timeout=20_000)
    assert panes["left"].rate.text() == "running" and panes["right"].rate.text() == "waits"
    assert not window.compare.replay_button.isEnabled()
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert "stopped" in window.compare.verdict.text() and panes["left"].body.text


def test_a_model_loaded_in_the_middle_stops_the_comparison_for_good(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 30.0, 200
    window.do.set_mode("compare")
    window.composer.set_text("Explain rainbows")
    window.do.send()
    qtbot.waitUntil(lambda: bool(window.compare.panes["left"].body.text), timeout=20_000)
    load(qtbot, window.services.client)
    assert window.compare.verdict.text() == "not comparable: stopped"
    comparison = window.services.conversation.comparison.comparison
    assert from_record(to_record(comparison)).verdict_line() == "not comparable: stopped"


def test_the_replay_plays_both_on_one_clock(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 60.0, 40
    compare(qtbot, window)
    view, comparison = window.compare, window.services.conversation.comparison.comparison
    began = now = 100.0
    view._now = lambda: now
    qtbot.mouseClick(view.replay_button, Qt.MouseButton.LeftButton)
    assert view.replaying and view.panes["right"].body.text == ""
    now = began + comparison.right.duration_s
    qtbot.waitUntil(lambda: view.panes["right"].body.text == comparison.right.text, timeout=20_000)
    assert len(view.panes["left"].body.text) < len(comparison.left.text)
    now = began + comparison.duration_s - 0.001
    qtbot.waitUntil(lambda: view.panes["left"].clock.text() == f"{comparison.duration_s:.1f}\u00a0s", timeout=20_000)
    assert view.replaying
    now = began + comparison.duration_s
    qtbot.waitUntil(lambda: not view.replaying, timeout=20_000)
    assert view.panes["left"].body.text == comparison.left.text


def test_the_report_holds_the_prompt_both_rates_and_the_verdict(qtbot, window):
    compare(qtbot, window)
    qtbot.mouseClick(window.compare.copy_button, Qt.MouseButton.LeftButton)
    report = QGuiApplication.clipboard().text()
    comparison = window.services.conversation.comparison.comparison
    assert "Explain rainbows" in report and "Scripted pair" in report
    assert "identical" in report and "mlx" in report
    assert comparison.right.text.split(".")[0] in report or f"{comparison.right.tok_s:.0f}" in report


def test_the_chat_keeps_the_answer_and_the_comparison_can_be_reopened(qtbot, window):
    compare(qtbot, window)
    qtbot.mouseClick(window.compare.close_button, Qt.MouseButton.LeftButton)
    assert window.stack.currentWidget() is window.transcript
    assert window.transcript.answers[-1].body.text == window.services.conversation.comparison.comparison.right.text
    window.do.show_comparison()
    assert window.stack.currentWidget() is window.compare


def test_what_is_done_to_the_chat_brings_it_in_front_of_a_comparison(qtbot, window):
    def send() -> None:
        window.composer.set_text("And the second bow?")
        window.do.send()

    compare(qtbot, window)
    window.do.set_mode("dflash")
    for act in (window.do.answer_again, lambda: window.do.step_version(-1), send, window.do.delete_message):
        window.do.show_comparison()
        act()
        assert window.stack.currentWidget() is window.transcript
        wait_ready(qtbot, window.services.client)
    window.do.compare_again()
    assert window.stack.currentWidget() is window.compare
    wait_ready(qtbot, window.services.client)


def test_a_chat_branched_off_while_a_comparison_runs_takes_what_is_there(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 50.0, 400
    window.do.set_mode("compare")
    window.composer.set_text("Why?")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: len(talk.comparison.longest_text()) > 20, timeout=20_000)
    seen = talk.comparison.longest_text()
    window.do.branch_chat()
    assert talk.messages[-1].state == "stopped" and talk.messages[-1].content == seen
    window.do.stop()
    qtbot.waitUntil(lambda: talk.comparison.running is None, timeout=20_000)
    wait_ready(qtbot, window.services.client)


def test_a_crash_in_an_arm_is_shown_and_the_other_text_is_kept(qtbot, window, loader, caplog):
    window.services.conversation.comparison.arm_started.connect(
        lambda name: setattr(loader.script, "crash_at", 5 if name == "right" else None)
    )
    window.do.set_mode("compare")
    window.composer.set_text("Explain rainbows")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.LOST, timeout=20_000)
    assert "failed" in window.compare.verdict.text() and "engine failed" in window.banner.text
    assert len(window.compare.panes["left"].body.text) > 100
    loader.script.crash_at = None
    load(qtbot, window.services.client)


# Other arms, and earlier comparisons


def test_any_two_arms_can_be_chosen_and_run_again(qtbot, window, loader):
    compare(qtbot, window)
    bar = window.compare.bar
    assert [bar.right.itemData(index) for index in range(bar.right.count())] == ["baseline", "dflash", "lookup", "dflash:2",
                                                                               "dflash:3", "dflash:4"]  # fmt: skip
    for box, arm in ((bar.left, "dflash:2"), (bar.right, "dflash:4")):
        box.setCurrentIndex(box.findData(arm))
        box.activated.emit(box.currentIndex())
    assert window.services.settings.current.arms == ("dflash:2", "dflash:4")
    qtbot.mouseClick(bar.run_button, Qt.MouseButton.LeftButton)
    run = window.services.conversation.comparison
    qtbot.waitUntil(lambda: run.running is None and run.comparison.left.arm.block_length == 2, timeout=20_000)
    wait_ready(qtbot, window.services.client)
    requests = loader.engines[-1].requests[-2:]
    assert [(request.mode, request.block_length) for request in requests] == [("dflash", 2), ("dflash", 4)]
    assert not any(request.use_cache for request in requests), "neither arm may start from what the other left"
    assert window.compare.panes["left"].title.text() == "DFlash, block 2"
    assert "DFlash, block 4: " in window.compare.details.text()


def test_without_a_draft_plain_is_set_beside_lookup(qtbot, window, loader):
    loader.script.has_draft = False
    load(qtbot, window.services.client)
    bar = window.compare.bar
    assert (bar.left.currentData(), bar.right.currentData(), bar.right.count()) == ("baseline", "lookup", 2)
    compare(qtbot, window)
    assert [request.mode for request in loader.engines[-1].requests[-2:]] == ["baseline", "lookup"]


@pytest.fixture
def earlier(qtbot, window):
    """Two comparisons and the list of them."""
    compare(qtbot, window, "Explain rainbows")
    window.do.new_chat()
    compare(qtbot, window, "Explain clouds")
    window.do.show_comparisons()
    dialog = window.findChild(ComparisonList)
    qtbot.waitUntil(lambda: dialog.tree.topLevelItemCount() == 2)
    return dialog


@OFFSCREEN_DIALOG
def test_earlier_comparisons_are_listed_opened_and_replayed(qtbot, window, earlier):
    prompts = [earlier.tree.topLevelItem(index).text(1) for index in range(earlier.tree.topLevelItemCount())]
    assert prompts == ["Explain clouds", "Explain rainbows"]
    assert "identical, 40 tokens" in earlier.tree.topLevelItem(0).text(4) and "Plain" in earlier.tree.topLevelItem(0).text(3)
    window.do.new_chat()
    earlier.tree.setCurrentItem(earlier.tree.topLevelItem(1))
    qtbot.mouseClick(earlier.open_button, Qt.MouseButton.LeftButton)
    assert window.stack.currentWidget() is window.compare and window.compare.prompt.text() == "Explain rainbows"
    shown = window.services.conversation.comparison.comparison
    assert window.compare.panes["right"].body.text == shown.right.text and "identical" in window.compare.verdict.text()
    window.do.replay()
    assert window.compare.replaying
    window.compare.stop_replay()
    window.do.copy_report()
    assert "Explain rainbows" in QGuiApplication.clipboard().text()


@OFFSCREEN_DIALOG
def test_a_report_is_copied_from_the_list_with_machine_versions_and_date(qtbot, earlier):
    qtbot.mouseClick(earlier.copy_button, Qt.MouseButton.LeftButton)
    report = QGuiApplication.clipboard().text()
    assert all(part in report for part in ("Explain clouds", "- mlx: ", "- processor: ", "- Date: 20", "Scripted pair"))


@OFFSCREEN_DIALOG
def test_an_earlier_comparison_is_deleted_for_good(qtbot, window, earlier, make_services):
    qtbot.mouseClick(earlier.delete_button, Qt.MouseButton.LeftButton)
    assert [entry.prompt for entry in window.services.comparisons.entries()] == ["Explain rainbows"]
    qtbot.waitUntil(lambda: earlier.tree.topLevelItemCount() == 1)
    earlier.close()
    window.retire()
    assert window.services.shutdown()
    assert [entry.prompt for entry in make_services().comparisons.entries()] == ["Explain rainbows"]


@OFFSCREEN_DIALOG
def test_the_window_lives_on_while_many_comparisons_are_listed(qtbot, window, earlier, monkeypatch):
    earlier.close()
    qtbot.waitUntil(lambda: window.findChild(ComparisonList) is None)
    store = window.services.comparisons._store
    for _copy in range(8):
        store.add(store.record(store.ids()[-1]))
    monkeypatch.setattr("app.ui.comparison_list.SLICE_S", 0.0)  # one at a time
    window.do.show_comparisons()
    dialog = window.findChild(ComparisonList)
    assert dialog.tree.topLevelItemCount() == 1 and dialog.open_button.isEnabled()
    dialog.tree.setCurrentItem(dialog.tree.topLevelItem(0))
    qtbot.waitUntil(lambda: dialog.tree.topLevelItemCount() == 10)
    assert dialog.tree.currentIndex().row() == 0 and dialog.none.isHidden()
    dialog.tree.setCurrentItem(dialog.tree.topLevelItem(6))
    dialog.delete_button.click()
    qtbot.waitUntil(lambda: dialog.tree.topLevelItemCount() == 9)
    assert dialog.tree.currentIndex().row() == 6
    dialog.tree.setCurrentItem(dialog.tree.topLevelItem(0))
    dialog.delete_button.click()
    window.retire()  # the program ends while they are listed
    assert not dialog.isVisible() and window.services.shutdown()
    qtbot.wait(50)


def test_a_comparison_that_cannot_be_read_hides_no_other(qtbot, window, caplog):
    compare(qtbot, window)
    store = window.services.comparisons._store
    store.add({"at": 1.0, "prompt": "from another world"})
    store._db.execute("INSERT INTO comparisons (created_at, record) VALUES (1, 'no JSON')")
    assert [entry.prompt for entry in window.services.comparisons.entries()] == ["Explain rainbows"]
    assert "cannot be read" in caplog.text


def test_only_the_newest_comparisons_are_kept(window, monkeypatch):
    monkeypatch.setattr("app.store.comparisons.KEPT", 3)
    store = window.services.comparisons._store
    for at in range(5):
        store.add({"at": float(at)})
    assert [store.record(each)["at"] for each in store.ids()] == [4.0, 3.0, 2.0]
