"""The first run: a tour that gets in nobody's way, and a bigger model one click away."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.services import library
from app.services.engine_client import EngineState
from app.ui.tour import STEPS
from engine import ModelError
from engine.models.entries import PairEntry
from tests.gui.conftest import load, wait_ready

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


@pytest.fixture(autouse=True)
def suggestion(monkeypatch) -> list[PairEntry | Exception | None]:
    """What is suggested for any pair: the last of these; nothing until a test says otherwise."""
    given: list[PairEntry | Exception | None] = [None]

    def suggested(pair: str) -> PairEntry | None:
        if isinstance(given[-1], Exception):
            raise given[-1]
        return given[-1]

    monkeypatch.setattr(library, "suggested", suggested)
    return given


@pytest.fixture
def tour(window):
    return window.first_run.tour


def test_the_tour_shows_three_steps_beside_their_parts_and_is_not_shown_again(qtbot, window, tour, make_services, make_window):
    tour.start_once()
    assert tour.isVisible() and len(STEPS) == 3
    for part in (window.composer, window.composer.modes, window.meter):
        assert tour.geometry().bottom() <= part.mapTo(window, part.rect().topLeft()).y()
        assert window.rect().contains(tour.geometry())
        qtbot.mouseClick(tour.next, Qt.MouseButton.LeftButton)
    assert not tour.isVisible()
    window.retire()
    window.services.shutdown()
    again = make_window(make_services())
    again.first_run.tour.start_once()
    assert not again.first_run.tour.isVisible()


def test_escape_skips_the_tour_while_the_message_field_keeps_the_keys(qtbot, window, tour):
    window.composer.setFocus()
    tour.start()
    qtbot.keyClicks(window.composer.edit, "Hello")
    assert tour.isVisible() and window.composer.text() == "Hello"
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    assert not tour.isVisible() and window.composer.text() == "Hello"


def test_a_first_question_ends_the_tour_and_escape_stops_its_answer(qtbot, window, tour, loader):
    loader.script.rate, loader.script.tokens = 20.0, 400
    tour.start()
    window.composer.set_text("Long story")
    window.do.send()
    assert not tour.isVisible()
    qtbot.waitUntil(lambda: bool(window.services.conversation.active.text), timeout=20_000)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[-1].state == "stopped"


def test_who_has_chats_already_is_shown_no_tour(window, tour):
    window.services.store.create_chat("Old")
    tour.start_once()
    assert not tour.isVisible()


def test_the_tour_starts_again_from_the_help_menu_at_its_first_step(qtbot, window, tour):
    tour.start()
    qtbot.mouseClick(tour.next, Qt.MouseButton.LeftButton)
    window.actions_by_id["tour"].trigger()
    assert tour.isVisible() and tour.title.text() == "Ask here" and tour.place.text() == "1 of 3"
    tour.end()


def test_the_tour_stays_beside_its_part_when_the_window_changes_size(qtbot, window, tour):
    tour.start()
    window.resize(760, 520)
    qtbot.waitUntil(lambda: window.rect().contains(tour.geometry()))
    assert tour.geometry().bottom() <= window.composer.mapTo(window, window.composer.rect().topLeft()).y()
    tour.end()


def test_a_bigger_model_that_fits_is_one_click_away(qtbot, window, monkeypatch, suggestion):
    suggestion.append(PairEntry("bigger", "Bigger 4B", "with a draft", "missing", 4_000_000_000))
    opened = []
    monkeypatch.setattr(window.model_manager, "show", opened.append)
    load(qtbot, window.services.client)
    qtbot.waitUntil(window.empty.offer.isVisible)
    assert "Bigger 4B" in window.empty.offer.text()
    qtbot.mouseClick(window.empty.offer, Qt.MouseButton.LeftButton)
    assert opened == ["bigger"]


HERE = PairEntry("here", "Here 4B", "with a draft", "ready", 4_000_000_000)


@pytest.mark.parametrize("nothing", [None, HERE, ModelError("No catalog.")], ids=["nothing fits", "it is here", "nothing to read"])
def test_where_nothing_bigger_is_there_nothing_is_offered(qtbot, window, suggestion, nothing):
    suggestion.append(PairEntry("bigger", "Bigger 4B", "with a draft", "missing", 4_000_000_000))
    load(qtbot, window.services.client)
    qtbot.waitUntil(window.empty.offer.isVisible)
    suggestion.append(nothing)
    load(qtbot, window.services.client)
    qtbot.waitUntil(lambda: not window.empty.offer.isVisible())


def test_escape_ends_the_tour_first_and_then_stops_what_runs(qtbot, make_window, services, loader):
    loader.script.load_s = 20.0
    window = make_window(services)
    services.client.load("scripted")  # as at a first start, where the tour is there before the model is
    qtbot.waitUntil(window.isActiveWindow, timeout=20_000)
    tour = window.first_run.tour
    tour.start()
    window.composer.setFocus()
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    assert not tour.isVisible() and services.client.state is EngineState.LOADING
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: services.client.state is EngineState.NO_MODEL, timeout=20_000)
