"""Who is away is told once an answer is there; nobody is told while it is written, and screen readers always are."""

from __future__ import annotations

import sys

from app import mac
from tests.gui.conftest import wait_ready
from tests.scripted import words_of


class Told:
    """What was shown and what was spoken."""

    def __init__(self, window, away: bool):
        self.sent: list[tuple[str, str]] = []
        self.said: list[str] = []
        notifier = window.notifier
        notifier.send, notifier.say, notifier.away = lambda *words: self.sent.append(words), self.said.append, lambda: away


def ask(qtbot, window, text: str = "Explain rainbows") -> None:
    window.composer.set_text(text)
    window.do.send()
    wait_ready(qtbot, window.services.client)


def test_who_is_away_is_told_once_that_the_answer_is_ready(qtbot, window):
    told = Told(window, away=True)
    ask(qtbot, window)
    ((title, text),) = told.sent
    assert title == "Answer ready" and text.startswith("A rainbow forms") and len(text) <= 120
    assert told.said == ["Answer ready"]


def test_who_is_there_is_not_notified_but_hears_it(qtbot, window):
    told = Told(window, away=False)
    ask(qtbot, window)
    assert told.sent == [] and told.said == ["Answer ready"]


def test_notifications_can_be_turned_off(qtbot, window):
    told = Told(window, away=True)
    window.services.settings.update(notify=False)
    ask(qtbot, window)
    assert told.sent == []


def test_a_comparison_is_told_once(qtbot, window):
    told = Told(window, away=True)
    window.do.set_mode("compare")
    ask(qtbot, window)
    qtbot.waitUntil(lambda: window.services.conversation.comparison.running is None)
    wait_ready(qtbot, window.services.client)
    assert [title for title, _text in told.sent] == ["Answer ready"]


def test_an_answer_that_the_user_stopped_is_not_told(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 20.0, 400
    told = Told(window, away=True)
    window.composer.set_text("Long story")
    window.do.send()
    qtbot.waitUntil(lambda: bool(window.services.conversation.active.text), timeout=20_000)
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert told.sent == [] and told.said == []


def test_an_answer_that_failed_is_told_as_such(qtbot, window, loader, caplog):
    loader.script.crash_at = 5
    told = Told(window, away=True)
    window.composer.set_text("Crash")
    window.do.send()
    qtbot.waitUntil(lambda: bool(told.sent), timeout=20_000)
    assert told.sent[0][0] == "No answer: something went wrong"


def test_a_model_that_is_ready_is_told(window):
    told = Told(window, away=True)
    window.services.downloads.finished.emit("org/model")
    assert told.sent == [("Model ready", "The download is complete and checked.")]


def test_where_the_system_shows_no_notifications_nothing_happens(qtbot, window):
    window.notifier._send("Answer ready", "text")  # the offscreen platform has no tray
    assert window.notifier._tray is None
    window.notifier.say("Answer ready")  # the real announcement


def test_on_a_mac_the_system_s_own_notification_is_used(monkeypatch):
    shown = []

    class Note:
        def __init__(self):
            self.values = {}

        @classmethod
        def alloc(cls):
            return cls()

        def init(self):
            return self

        def setTitle_(self, text):
            self.values["title"] = text

        def setInformativeText_(self, text):
            self.values["text"] = text

    class Centre:
        def deliverNotification_(self, note):
            shown.append(note.values)

    foundation = type(mac)("Foundation")
    foundation.NSUserNotification = Note
    monkeypatch.setitem(sys.modules, "Foundation", foundation)
    monkeypatch.setattr(mac, "_notification_centre", Centre)
    assert mac.notify("Answer ready", "text") and shown == [{"title": "Answer ready", "text": "text"}]


def test_elsewhere_the_mac_s_way_says_that_it_is_none(monkeypatch):
    monkeypatch.setattr(mac, "IS_MAC", False)
    assert mac.notify("Answer ready", "text") is False


def test_a_notification_tells_the_answer_and_not_what_was_thought(qtbot, window, loader):
    told = Told(window, away=True)
    loader.script.text = "<think>\nThe user asks about light.\n</think>\n\nSunlight bends."
    loader.script.tokens = len(words_of(loader.script.text))
    ask(qtbot, window)
    ((_title, text),) = told.sent
    assert text.startswith("Sunlight") and "user asks" not in text
