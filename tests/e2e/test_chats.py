"""Chats as a user handles them, by keyboard on a real screen: edit, go back a version, delete, take it back, find, quit, return."""

from __future__ import annotations

import signal
import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("drives an X11 screen", allow_module_level=True)

from app.services.wiring import CHATS
from app.store import ChatStore
from tests.e2e.running import Running, state_reached
from tests.e2e.x11 import User, screen

pytestmark = pytest.mark.slow


def chats(running: Running):
    """(chats, deleted chats) as the chat file has them."""
    store = ChatStore(running.folder / CHATS)
    try:
        return store.chats(), store.deleted_chats()
    finally:
        store.close()


def answered(running: Running, count: int) -> bool:
    """Whether ``count`` answers of the only chat are done."""
    kept = running.messages()
    return bool(kept) and [message.state for message in kept[0]].count("done") == count


def test_a_user_edits_goes_back_deletes_and_finds_again(starter, tmp_path):
    with screen() as display:
        user, running = User(display), Running(display, tmp_path)
        again = None
        try:
            window = user.wait_for_window("Slipstream")
            running.wait(state_reached(running, "READY"), "loading the starter pair")
            user.click(window, -400, -110)  # no window manager gives it the keyboard
            user.type("name one river")
            user.press("Return")
            running.wait(lambda: answered(running, 1), "the first answer")
            user.press("Control_L", "e")
            user.type(" in Peru")
            user.press("Return")
            running.wait(lambda: answered(running, 2), "the answer to the edited question")
            first, first_answer, second, _second_answer = running.messages()[0]
            assert (first.content, second.content) == ("name one river", "name one river in Peru")
            assert first.parent_id is second.parent_id is None and chats(running)[0][0].title == second.content

            user.press("Control_L", "bracketleft")
            running.wait(lambda: chats(running)[0][0].leaf_id == first_answer.id, "showing the first version")

            user.press("Control_L", "Shift_L", "BackSpace")
            running.wait(lambda: chats(running)[0] == [] and len(chats(running)[1]) == 1, "deleting")
            user.press("Control_L", "n")
            user.press("Control_L", "Shift_L", "f")
            user.press("Down")  # into the list, where the key is not the search field's
            user.press("Control_L", "z")
            running.wait(lambda: len(chats(running)[0]) == 1, "taking it back")

            user.press("Control_L", "Shift_L", "f")
            user.type("Peru")
            user.press("Return")
            running.wait(lambda: chats(running)[0][0].leaf_id != first_answer.id, "opening the hit on its branch")
            user.press("Control_L", "q")
            assert running.process.wait(20) == 0 and running.process.stderr.read() == ""

            ready = len(running.trace("state", name="READY"))
            again = Running(display, tmp_path)
            again.wait(state_reached(again, "READY", times=ready + 1), "the next start")
            assert [message.content for message in again.messages()[0]][::2] == [first.content, second.content]
            again.process.send_signal(signal.SIGTERM)
            assert again.process.wait(30) == 0 and again.process.stderr.read() == ""
        finally:
            running.close()
            if again is not None:
                again.close()
            user.close()
