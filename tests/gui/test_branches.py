"""Branches: editing and answering again keep the version before; versions are switched by mouse, keyboard and command."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QToolButton

from app.core.chat import Attachment
from app.services.engine_client import EngineState
from app.services.wiring import CHATS
from app.store import ChatStore
from app.ui.message_editor import MessageEditor
from tests.gui.conftest import load, wait_ready


def ask(qtbot, window, text: str):
    """Sends and waits; the answer."""
    window.composer.set_text(text)
    window.do.send()
    wait_ready(qtbot, window.services.client)
    return window.services.conversation.messages[-1]


def shown(window) -> list[str]:
    """What the transcript shows, from top to bottom."""
    mounted = window.transcript._mounted
    return [mounted[message.id].message.content for message in window.services.conversation.messages]


def edit(qtbot, window, message_id: int, text: str) -> None:
    """Types another text into a message's editor and sends it."""
    window.transcript._tools[message_id].edit.click()
    editor = window.transcript.editing.editor
    editor.edit.selectAll()
    qtbot.keyClicks(editor.edit, text)
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return)


def say(loader, text: str) -> None:
    """What the engine answers from now on."""
    loader.script.text, loader.script.tokens = text, len(text.split())


@pytest.fixture
def versions(qtbot, window, loader):
    """A chat whose only question was edited once, both versions answered: (first question, second question)."""
    say(loader, "First answer")
    ask(qtbot, window, "First question")
    first = window.services.conversation.messages[0]
    say(loader, "Second answer")
    edit(qtbot, window, first.id, "Second question")
    wait_ready(qtbot, window.services.client)
    return first, window.services.conversation.messages[0]


def test_an_edited_message_is_another_version_with_an_answer_of_its_own(qtbot, window, versions, loader, tmp_path):
    first, second = versions
    assert shown(window) == ["Second question", "Second answer"] and second.parent_id is None
    assert [turn.content for turn in loader.engines[-1].requests[-1].messages] == ["Second question"]
    other = ChatStore(tmp_path / CHATS)
    kept = other.messages(first.chat_id)
    other.close()
    assert [message.content for message in kept] == ["First question", "First answer", "Second question", "Second answer"]


def test_versions_are_switched_with_the_mouse_and_the_place_is_told(qtbot, window, versions):
    first, second = versions
    tools = window.transcript._tools[second.id]
    assert tools.place.text() == "2 of 2" and not tools.after.isEnabled()
    qtbot.mouseClick(tools.before, Qt.MouseButton.LeftButton)
    assert shown(window) == ["First question", "First answer"]
    tools = window.transcript._tools[first.id]
    assert tools.place.text() == "1 of 2" and not tools.before.isEnabled() and not tools.place.isHidden()
    qtbot.mouseClick(tools.after, Qt.MouseButton.LeftButton)
    assert shown(window) == ["Second question", "Second answer"]


def test_versions_are_switched_by_command_and_reached_with_the_keyboard(qtbot, window, versions):
    assert window.actions_by_id["previous_version"].isEnabled()
    window.actions_by_id["previous_version"].trigger()
    assert shown(window)[0] == "First question"
    window.actions_by_id["next_version"].trigger()
    assert shown(window)[0] == "Second question"
    before = window.transcript._tools[versions[1].id].before
    assert before.focusPolicy() & Qt.FocusPolicy.TabFocus
    before.setFocus()
    qtbot.keyClick(before, Qt.Key.Key_Space)
    assert shown(window)[0] == "First question"


def test_the_version_on_show_is_there_again_after_a_restart(qtbot, make_services, window, versions):
    window.do.step_version(-1)
    window.retire()
    window.services.shutdown()
    again = make_services()
    again.conversation.open(versions[0].chat_id)
    assert [message.content for message in again.conversation.messages] == ["First question", "First answer"]


def test_answering_again_shows_the_new_answer_in_the_old_one_s_place(qtbot, window, loader):
    say(loader, "One")
    ask(qtbot, window, "Why?")
    say(loader, "Two")
    retry = next(b for b in window.transcript.answers[-1].findChildren(QToolButton) if b.accessibleName() == "Answer again")
    qtbot.mouseClick(retry, Qt.MouseButton.LeftButton)
    wait_ready(qtbot, window.services.client)
    assert shown(window) == ["Why?", "Two"] and window.transcript.count == 2
    window.do.step_version(-1)
    assert shown(window) == ["Why?", "One"]


def test_answering_an_earlier_question_again_leaves_what_followed_on_its_own_branch(qtbot, window, loader):
    say(loader, "One")
    first = ask(qtbot, window, "Why?")
    ask(qtbot, window, "And then?")
    say(loader, "Two")
    window.branching.answer_again(first.id)
    wait_ready(qtbot, window.services.client)
    assert shown(window) == ["Why?", "Two"]
    window.do.step_version(-1)
    assert shown(window) == ["Why?", "One", "And then?", "One"]
    say(loader, "Three")
    ask(qtbot, window, "More?")
    sent = [turn.content for turn in loader.engines[-1].requests[-1].messages]
    assert sent == ["Why?", "One", "And then?", "One", "More?"]


def test_switching_away_from_an_answer_that_is_being_written_loses_nothing(qtbot, window, loader):
    say(loader, "Short answer")
    first = ask(qtbot, window, "Why?")
    say(loader, "A long answer that takes a while to be written. " * 4)
    loader.script.rate = 40.0
    window.do.answer_again()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 30), timeout=20_000)
    window.do.step_version(-1)
    assert shown(window) == ["Why?", "Short answer"]
    seen = len(talk.active.text)
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > seen), timeout=20_000)
    window.do.step_version(1)
    assert window.transcript.answers[-1].body.text == talk.active.text
    window.do.step_version(-1)
    wait_ready(qtbot, window.services.client)
    assert shown(window) == ["Why?", "Short answer"] and talk.tree[first.id].content == "Short answer"
    window.do.step_version(1)
    assert shown(window)[-1].strip() == loader.script.text.strip() and talk.messages[-1].state == "done"
    assert window.transcript.answers[-1].body.text == talk.messages[-1].content


def test_an_edit_while_an_answer_runs_waits_in_its_editor(qtbot, window, loader):
    say(loader, "First answer")
    ask(qtbot, window, "Question")
    say(loader, "Slow words " * 40)
    loader.script.rate = 30.0
    window.composer.set_text("Next")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    first = window.services.conversation.messages[0]
    edit(qtbot, window, first.id, "Edited question")
    assert window.transcript.editing.editor.text == "Edited question" and "not ready" in window.banner.text
    assert window.services.client.state is EngineState.DECODING and len(window.services.conversation.messages) == 4
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    loader.script.rate = 0.0
    window.transcript.editing.editor.send.click()
    wait_ready(qtbot, window.services.client)
    assert shown(window)[0] == "Edited question" and window.transcript.editing.editor is None


def test_escape_leaves_the_message_as_it_was(qtbot, window, loader):
    ask(qtbot, window, "Question")
    first = window.services.conversation.messages[0]
    window.actions_by_id["edit_message"].trigger()
    editor = window.transcript.editing.editor
    assert editor.text == "Question" and editor.edit.hasFocus()
    qtbot.keyClicks(editor.edit, " and more")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert window.transcript.editing.editor is None and not window.transcript._mounted[first.id].isHidden()
    assert window.services.conversation.version_of(first.id) == (1, 1)


def test_escape_in_an_editor_leaves_the_answer_that_is_being_written_alone(qtbot, window, loader):
    loader.script.rate, loader.script.tokens = 50.0, 400
    window.composer.set_text("Why?")
    window.do.send()
    qtbot.waitUntil(lambda: window.services.client.state is EngineState.DECODING, timeout=20_000)
    window.do.edit_message()
    qtbot.keyClick(window.transcript.editing.editor.edit, Qt.Key.Key_Escape)
    assert window.transcript.editing.editor is None and window.services.client.state is EngineState.DECODING
    qtbot.keyClick(window.transcript, Qt.Key.Key_Escape)
    wait_ready(qtbot, window.services.client)
    assert window.services.conversation.messages[-1].state == "stopped"


def test_what_was_edited_and_not_sent_is_there_again_after_another_chat(qtbot, window, loader):
    ask(qtbot, window, "Question")
    first = window.services.conversation.messages[0]
    window.do.edit_message()
    qtbot.keyClicks(window.transcript.editing.editor.edit, " and more")
    window.do.new_chat()
    window.do.open_chat(first.chat_id)
    window.do.edit_message()
    assert window.transcript.editing.editor.text == "Question and more"
    qtbot.keyClick(window.transcript.editing.editor.edit, Qt.Key.Key_Return)
    wait_ready(qtbot, window.services.client)
    window.do.step_version(-1)
    window.do.edit_message()
    assert window.transcript.editing.editor.text == "Question"


@pytest.mark.parametrize("messages", [20, 200], ids=["mounted", "far away"])
def test_an_edited_message_comes_into_view_from_wherever_one_reads(qtbot, window, messages):
    store = window.services.store
    chat = store.create_chat("Long")
    asked = [store.add_message(chat.id, "user", f"question {number} " * 40, "sent") for number in range(messages)]
    window.do.open_chat(chat.id)
    window.transcript.reveal(asked[0].id)
    qtbot.wait(50)
    window.do.edit_message()
    editor = window.findChild(MessageEditor)
    assert editor is not None and editor.text == asked[-1].content
    qtbot.wait(100)
    assert not editor.visibleRegion().isEmpty() and editor.edit.hasFocus()


def test_a_message_too_long_for_an_editor_says_so(qtbot, window):
    store = window.services.store
    chat = store.create_chat("Long")
    store.add_message(chat.id, "user", "x" * 30_000, "sent")
    window.do.open_chat(chat.id)
    window.do.edit_message()
    assert window.transcript.editing.editor is None and "too long" in window.banner.text


def test_editing_the_first_message_renames_the_chat_unless_the_user_named_it(qtbot, window, versions):
    assert window.title.text() == "Second question"
    window.services.shelf.rename(versions[0].chat_id, "My own name")
    edit(qtbot, window, versions[1].id, "Third question")
    wait_ready(qtbot, window.services.client)
    assert window.title.text() == "My own name"


def test_a_branch_goes_on_in_a_chat_of_its_own(qtbot, window, loader):
    say(loader, "One")
    first = ask(qtbot, window, "Why?")
    ask(qtbot, window, "And then?")
    before = window.services.store.messages(first.chat_id)
    window.branching.branch(first.id)
    talk = window.services.conversation
    assert talk.chat.id != first.chat_id and talk.chat.title == "Why? (branch)" and shown(window) == ["Why?", "One"]
    ask(qtbot, window, "Elsewhere?")
    assert window.services.store.messages(first.chat_id) == before
    assert [turn.content for turn in loader.engines[-1].requests[-1].messages] == ["Why?", "One", "Elsewhere?"]


def test_a_branch_from_an_answer_that_is_being_written_takes_what_is_there(qtbot, window, loader):
    say(loader, "Slow words " * 40)
    loader.script.rate = 40.0
    window.composer.set_text("Why?")
    window.do.send()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 30), timeout=20_000)
    seen, first = talk.active.text, talk.chat.id
    window.do.branch_chat()
    assert talk.chat.id != first and talk.messages[-1].state == "stopped" and talk.messages[-1].content == seen
    window.do.open_chat(first)
    window.do.stop()
    wait_ready(qtbot, window.services.client)
    assert talk.messages[-1].state == "stopped" and talk.messages[-1].content.startswith(seen)


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_a_message_s_menu_branches_and_deletes(qtbot, window, loader):
    answer = ask(qtbot, window, "Why?")
    window.transcript._tools[answer.id].more.click()
    branch, delete = window.transcript._tools[answer.id].findChild(QMenu).actions()
    delete.trigger()
    assert shown(window) == ["Why?"] and window.services.shelf.deletions[-1].message_id == answer.id
    branch = window.transcript._tools[window.services.conversation.messages[0].id].menu().actions()[0]
    branch.trigger()
    assert window.services.conversation.chat.title == "Why? (branch)"


def test_a_side_by_side_answer_is_a_version_too(qtbot, window, loader):
    say(loader, "One")
    ask(qtbot, window, "Why?")
    window.do.set_mode("compare")
    window.do.answer_again()
    talk = window.services.conversation
    qtbot.waitUntil(lambda: talk.comparison.comparison is not None and talk.comparison.running is None, timeout=20_000)
    wait_ready(qtbot, window.services.client)
    assert talk.version_of(talk.messages[-1].id) == (2, 2) and talk.messages[-1].state == "done"


def test_attachments_stay_with_an_edited_message(qtbot, services, loader):
    load(qtbot, services.client)
    talk = services.conversation
    talk.send("What is this?", "dflash", [Attachment("a.py", "print(1)")])
    wait_ready(qtbot, services.client)
    assert loader.engines[-1].requests[-1].messages[-1].content == "a.py:\n```\nprint(1)\n```\n\nWhat is this?"
    talk.edit(talk.messages[0].id, "And this?", "dflash")
    wait_ready(qtbot, services.client)
    assert talk.messages[0].attachments == (Attachment("a.py", "print(1)"),)
    assert loader.engines[-1].requests[-1].messages[-1].content == "a.py:\n```\nprint(1)\n```\n\nAnd this?"
