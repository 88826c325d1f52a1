"""A disk that refuses chats while the window is open: told in the store's words, and nothing is mixed up or called a crash."""

from __future__ import annotations

import threading

import pytest

from app.main import Options, Program
from app.services.crashlog import CRASH, LOG, CrashLog
from app.store import StoreError
from app.store.chats import ChatStore
from tests.gui.conftest import delete_later, wait_ready

REFUSED = "The disk does not take what is written: check its space and its health."


@pytest.fixture
def two_chats(qtbot, window):
    """(the first chat's id, the second's, which is open)"""
    made = []
    for text in ("First question", "Second question"):
        window.do.new_chat()
        window.composer.set_text(text)
        window.do.send()
        wait_ready(qtbot, window.services.client)
        made.append(window.services.conversation.chat.id)
    return made


def refuse(monkeypatch, *names) -> None:
    def refused(*_arguments, **_named):
        raise StoreError(REFUSED)

    for name in names:
        monkeypatch.setattr(ChatStore, name, refused)


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_a_chat_that_cannot_be_read_leaves_the_one_before_as_it_was(qtbot, window, two_chats, monkeypatch, name):
    talk, (first, second) = window.services.conversation, two_chats
    with monkeypatch.context() as patch:
        refuse(patch, name)
        window.sidebar.chats.open_asked.emit(first, None)
        assert window.banner.text == REFUSED and window.banner.action.isHidden(), "answering again is no way out"
    assert talk.chat.id == second and talk.messages[0].content == "Second question"
    qtbot.waitUntil(lambda: window.sidebar.chats.current_id() == second)
    window.composer.set_text("More")
    window.do.send()
    wait_ready(qtbot, talk.client)
    assert len(window.services.store.messages(first)) == 2 and len(window.services.store.messages(second)) == 4


def test_the_window_opens_with_a_new_chat_and_its_draft_where_the_last_one_cannot_be_read(
    qtbot, make_services, make_window, monkeypatch
):
    services = make_services()
    services.store.set_setting("last_chat", services.store.create_chat("Lost").id)
    services.store.set_setting("draft:new", "half a thought")
    refuse(monkeypatch, "messages")
    window = make_window(services)
    assert window.composer.text() == "half a thought" and window.banner.text == REFUSED
    assert window.services.conversation.chat is None


def test_what_cannot_be_kept_offers_neither_another_answer_nor_another_model(qtbot, window, two_chats, monkeypatch):
    refuse(monkeypatch, "pin_chat")
    window.do.pin_chat()
    assert window.banner.text == REFUSED and window.banner.action.isHidden()
    window.do.unload_model()
    qtbot.waitUntil(lambda: window.services.client.info is None and not window.services.client.busy)
    window.do.pin_chat()
    assert window.banner.text == REFUSED and window.banner.action.isHidden()


def test_a_refusal_that_nothing_expected_is_told_in_its_words_and_is_no_crash(qtbot, qapp, tmp_path, loader, capfd):
    program = Program(qapp, tmp_path, Options(pair="scripted"), loader)
    try:
        wait_ready(qtbot, program.services.client)
        try:
            raise StoreError(REFUSED)
        except StoreError as error:
            program.crash_log._on_uncaught(type(error), error, error.__traceback__)
        assert program.window.banner.text == REFUSED
    finally:
        program.quit()
        delete_later(program.window)
        delete_later(program.services)
    assert REFUSED in (tmp_path / LOG).read_text() and not (tmp_path / CRASH).exists()


def test_a_refusal_on_another_thread_touches_no_widget(tmp_path):
    crash_log, shown = CrashLog(tmp_path), []
    crash_log.install()
    crash_log.on_refusal = shown.append

    def refused() -> None:
        raise StoreError(REFUSED)

    thread = threading.Thread(target=refused)
    thread.start()
    thread.join()
    crash_log.close()
    assert shown == [] and REFUSED in (tmp_path / LOG).read_text()
