"""Learning from chats: only with consent, only while nobody needs the window, out of the way at once, and undone when asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox

from app.services.engine_client import EngineState
from app.services.learning import ENOUGH, IDLE_AFTER_ASKING_S, IDLE_S, MOST, on_mains_power
from app.services.wiring import Services
from app.ui.settings_dialog import SettingsDialog
from engine import RequestError
from tests.gui.conftest import load, wait_ready

SIZE_WARNING = "This plugin does not support"


@dataclass
class World:
    """What the probes say."""

    now: float = 0.0
    on_mains: bool = True


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "engine"))


@pytest.fixture
def world(services: Services, qtbot) -> World:
    """Learning agreed to, a clock and a plug in the test's hands, the scripted pair loaded, the window just used."""
    world = World()
    services.learning._clock, services.learning._on_mains = lambda: world.now, lambda: world.on_mains
    services.settings.update(learn_from_chats=True)
    services.learning._timer.stop()  # the tests tick themselves
    load(qtbot, services.client)
    return world


def add_chats(services: Services, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        chat = services.store.create_chat(f"Chat {number}")
        services.store.add_message(chat.id, "user", f"Question {number}", "sent")
        services.store.add_message(chat.id, "assistant", f"Answer {number}", "done")


def be_idle(services: Services, world: World, seconds: float = IDLE_S) -> None:
    world.now += seconds
    services.learning.tick()


def runs(loader) -> list:
    """The chats of every time the engine was asked to learn."""
    return loader.engines[-1].learned_from


def learned(services: Services) -> bool:
    return services.learning.learned_in_use and not services.learning.running


def test_without_consent_nothing_is_ever_learned(services: Services, world: World, loader, qtbot) -> None:
    services.settings.update(learn_from_chats=False)
    qtbot.waitUntil(lambda: not services.client._asides)
    add_chats(services, 3 * ENOUGH)
    be_idle(services, world, 100 * IDLE_S)
    services.learning.learn_now()
    wait_ready(qtbot, services.client)
    qtbot.wait(50)
    assert runs(loader) == [] and not services.learning.running and services.learning.status == ""


def test_consent_is_off_until_it_is_given(services: Services) -> None:
    assert services.settings.current.learn_from_chats is False and not services.learning._timer.isActive()
    services.settings.update(learn_from_chats=True)
    assert services.learning._timer.isActive()
    services.settings.update(learn_from_chats=False)
    assert not services.learning._timer.isActive()


def test_an_idle_window_learns_and_takes_the_better_draft(services: Services, world: World, loader, qtbot) -> None:
    add_chats(services, ENOUGH)
    be_idle(services, world)
    qtbot.waitUntil(lambda: learned(services))
    (chats,) = runs(loader)
    assert [[message.content for message in chat] for chat in chats] == [[f"Question {n}"] for n in reversed(range(ENOUGH))]
    assert services.learning.status == "Learning from your chats: 3.00 → 3.30 tokens/cycle"
    be_idle(services, world)
    qtbot.wait(50)
    assert len(runs(loader)) == 1  # nothing new since


@pytest.mark.parametrize("missing", ["chats", "idle", "power", "model"])
def test_it_waits_for_chats_for_an_idle_window_for_power_and_for_a_model(
    services: Services, world: World, loader, qtbot, missing: str
) -> None:
    add_chats(services, ENOUGH - (missing == "chats"))
    world.on_mains = missing != "power"
    if missing == "model":
        loader.script.load_error = RequestError("no such model")
        services.client.load("other")
        qtbot.waitUntil(lambda: services.client.state is EngineState.NO_MODEL)
    be_idle(services, world, IDLE_S - 1 if missing == "idle" else IDLE_S)
    qtbot.wait(50)
    assert runs(loader) == [] and not services.learning.running


def test_a_draft_that_is_not_better_is_not_taken(services: Services, world: World, loader, qtbot) -> None:
    loader.script.learning_figures = (3.0, 3.05)
    add_chats(services, ENOUGH)
    be_idle(services, world)
    qtbot.waitUntil(lambda: "no real gain" in services.learning.status)
    assert not services.learning.learned and len(loader.engines) == 1 and not loader.engines[0].closed


def slow_run(services: Services, world: World, loader, qtbot) -> None:
    """A run of many steps has begun."""
    loader.script.learning_steps, loader.script.learning_step_s = 1000, 0.02
    add_chats(services, ENOUGH)
    be_idle(services, world)
    qtbot.waitUntil(lambda: "step" in services.learning.status)


def finish_fast(loader) -> None:
    loader.script.learning_step_s = 0.0


def paused(services: Services) -> bool:
    return not services.client._asides and services.learning.status.endswith("paused")


def test_a_prompt_is_answered_while_it_learns_and_learning_goes_on_later(services: Services, world: World, loader, qtbot) -> None:
    slow_run(services, world, loader, qtbot)
    assert services.conversation.send("Hello", "dflash")
    with qtbot.waitSignal(services.conversation.answer_ended, timeout=20_000):
        pass
    qtbot.waitUntil(lambda: paused(services))
    done = max(loader.engines[-1].steps_done.values())
    assert 0 < done < 1000
    be_idle(services, world, IDLE_S - 1)
    assert not services.learning.running
    add_chats(services, 1, first=ENOUGH)  # the run goes on with the chats it began with
    finish_fast(loader)
    be_idle(services, world, 1)
    qtbot.waitUntil(lambda: learned(services))
    first, second = runs(loader)
    assert first == second


@pytest.mark.parametrize("reason", ["key", "unplugged", "consent withdrawn", "counting", "another model"])
def test_it_stops_at_once_for_every_reason_to(services: Services, world: World, loader, qtbot, reason: str) -> None:
    slow_run(services, world, loader, qtbot)
    if reason == "key":
        services.learning.touch()
    elif reason == "unplugged":
        world.on_mains = False
        services.learning.tick()
    elif reason == "consent withdrawn":
        services.settings.update(learn_from_chats=False)
    elif reason == "counting":
        services.conversation.open(None)
        services.client.count([])
    else:
        services.client.load("other")
        wait_ready(qtbot, services.client)
    assert not services.learning.running
    qtbot.waitUntil(lambda: not services.client._asides)
    assert max(loader.engines[0].steps_done.values()) < 1000


def test_a_run_goes_on_after_a_restart_with_the_same_chats(make_services, loader, qtbot) -> None:
    services = make_services()
    world = World()
    services.learning._clock = lambda: world.now
    services.settings.update(learn_from_chats=True)
    load(qtbot, services.client)
    slow_run(services, world, loader, qtbot)
    (before,) = runs(loader)
    assert services.shutdown(20.0)
    again = make_services()
    again.learning._clock, again.learning._on_mains = lambda: world.now, lambda: True
    add_chats(again, 2, first=ENOUGH)
    finish_fast(loader)
    load(qtbot, again.client)
    assert again.learning.status.endswith("paused")
    again.learning.touch()
    be_idle(again, world)
    qtbot.waitUntil(lambda: learned(again))
    assert runs(loader) == [before]


def test_a_deleted_chat_ends_the_run_that_reads_it(services: Services, world: World, loader, qtbot) -> None:
    slow_run(services, world, loader, qtbot)
    texts = Path(services.folder / "engine" / "learned" / "pair" / "run-1")
    texts.mkdir(parents=True)
    services.shelf.delete(services.store.chats()[0].id)
    assert not services.learning.running
    qtbot.waitUntil(lambda: not texts.exists())
    finish_fast(loader)
    be_idle(services, world)
    qtbot.wait(50)
    assert len(runs(loader)) == 1  # one chat fewer is too few


def test_what_was_learned_before_does_not_count_as_new(services: Services, world: World, loader, qtbot) -> None:
    add_chats(services, MOST + 5)
    be_idle(services, world)
    qtbot.waitUntil(lambda: learned(services))
    add_chats(services, ENOUGH - 1, first=100)
    be_idle(services, world)
    qtbot.wait(30)
    assert len(runs(loader)) == 1
    add_chats(services, 1, first=200)
    be_idle(services, world)
    qtbot.waitUntil(lambda: len(runs(loader)) == 2)
    assert [len(chats) for chats in runs(loader)] == [MOST, MOST] and runs(loader)[1][0][0].content == "Question 200"
    qtbot.waitUntil(lambda: learned(services))


def test_learning_now_waits_for_nothing_and_pauses_only_while_somebody_types(services, world, loader, qtbot) -> None:
    loader.script.learning_steps, loader.script.learning_step_s = 1000, 0.02
    add_chats(services, 1)
    world.on_mains = False
    services.learning.learn_now()
    qtbot.waitUntil(lambda: "step" in services.learning.status)
    services.learning.touch()
    qtbot.waitUntil(lambda: paused(services))
    finish_fast(loader)
    be_idle(services, world, IDLE_AFTER_ASKING_S)
    qtbot.waitUntil(lambda: learned(services))
    services.learning.learn_now()
    assert services.learning.status.endswith("there is nothing new to learn from")


def test_a_pair_that_cannot_learn_says_why_and_is_not_asked_again(services: Services, world: World, loader, qtbot) -> None:
    loader.script.learning_error = RequestError("This pair's draft is a DFlash 2 draft: choose another pair.")
    add_chats(services, ENOUGH)
    be_idle(services, world)
    qtbot.waitUntil(lambda: "DFlash 2" in services.learning.status)
    add_chats(services, ENOUGH, first=ENOUGH)
    be_idle(services, world)
    qtbot.wait(50)
    assert len(runs(loader)) == 1 and services.client.state is EngineState.READY


def test_the_original_draft_is_one_command_away_and_so_is_the_learned_one(window, world, loader, qtbot) -> None:
    services = window.services
    add_chats(services, ENOUGH)
    original, again = window.actions_by_id["use_original"], window.actions_by_id["use_learned"]
    assert not original.isEnabled() and not again.isEnabled()
    services.learning.learn_now()
    qtbot.waitUntil(lambda: original.isEnabled())
    assert window.meter.note.isVisible() and window.meter.note.text() == "Learning from your chats: 3.00 → 3.30 tokens/cycle"
    original.trigger()
    qtbot.waitUntil(lambda: again.isEnabled())
    assert not original.isEnabled() and not services.client.info.learned.in_use
    again.trigger()
    qtbot.waitUntil(lambda: original.isEnabled())


@pytest.mark.qt_log_ignore(SIZE_WARNING)
def test_forgetting_asks_and_then_deletes_everything_and_learns_no_more(window, world, qtbot) -> None:
    services = window.services
    kept = Path(services.folder / "engine" / "learned" / "pair" / "draft-1" / "model.safetensors")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x")
    window.do.forget_learned()
    box = window.findChild(QMessageBox)
    assert "nothing more is learned" in box.text() and kept.exists()
    next(button for button in box.buttons() if button.text() == "Forget").click()
    qtbot.waitUntil(lambda: not kept.parents[2].exists())
    assert services.settings.current.learn_from_chats is False


@pytest.mark.qt_log_ignore(SIZE_WARNING)
def test_the_settings_say_what_is_used_and_where_it_stays_before_the_user_agrees(window, qtbot) -> None:
    window.do.learn_now()
    assert "off" in window.banner.text and not window.services.learning.running
    window.banner.action.click()
    dialog = window.findChild(SettingsDialog)
    words = " ".join(label.text() for label in dialog.findChildren(type(dialog.privacy.learning)))
    assert all(part in words for part in ("never changes them", "stays on this machine", "Forget What Was Learned"))
    assert not dialog.privacy.learn.isChecked()
    dialog.privacy.learn.setChecked(True)
    assert window.services.settings.current.learn_from_chats and dialog.privacy.learning.text() == window.services.learning.status
    window.services.learning.forget()
    assert not dialog.privacy.learn.isChecked()
    dialog.close()
    qtbot.waitUntil(lambda: not window.services.client._asides)


def test_a_key_pressed_anywhere_in_the_program_counts_as_use(qtbot, tmp_path, loader, qapp) -> None:
    from app.main import Options, Program

    program = Program(qapp, tmp_path, Options(pair="scripted"), loader)
    program.window.show()
    try:
        wait_ready(qtbot, program.services.client)
        times = iter(range(1000))
        program.services.learning._clock = lambda: next(times)
        before = program.services.learning._touched_at
        qtbot.keyClick(program.window.composer, Qt.Key.Key_Shift)
        assert program.services.learning._touched_at != before
    finally:
        program.quit()
        program.window.deleteLater()
        program.services.deleteLater()


@pytest.mark.parametrize(("battery", "expected"), [(None, True), (True, True), (False, False)])
def test_a_machine_without_a_battery_is_on_mains_power(monkeypatch, battery, expected) -> None:
    found = None if battery is None else SimpleNamespace(power_plugged=battery)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: found)
    assert on_mains_power() is expected
