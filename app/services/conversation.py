"""The open chat: sends prompts, keeps every message and partial answer, and tells the window what changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.chat import (
    Attachment,
    Chat,
    ChatMessage,
    State,
    request_messages,
    title_for,
    up_to_last_question,
)
from app.core.figures import answer_statistics
from app.core.sanitize import clean_text
from app.core.thoughts import kept_answer
from app.core.tree import ChatTree
from app.core.words import tr
from app.services.chat_options import ChatOptionsService
from app.services.comparison_run import ComparisonRun
from app.services.engine_client import EngineClient, Timed
from app.services.settings import ChatMode, SettingsService
from app.store import ChatStore, StoreError
from app.worker import Failure
from engine import Finished, GenerationRequest, Mode, RequestError, Started, TextDelta

SAVE_MS = 500
AGAIN_MS = 3_000  # after which an answer that could not be written is tried again
log = logging.getLogger(__name__)


@dataclass(slots=True)
class ActiveAnswer:
    """The answer being written. ``finished`` is set by the engine's last event; ``opening`` is the tag the prompt ended with."""

    request_id: int
    message: ChatMessage
    request: GenerationRequest
    parts: list[str] = field(default_factory=list)
    finished: Finished | None = None
    saved_length: int = 0
    opening: str = ""

    @property
    def text(self) -> str:
        """All text so far."""
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""


class Conversation(QObject):
    """``messages`` is the branch on show, ``tree`` holds the whole chat.

    Signals: ``leaving()`` before another chat is opened or anything is asked: what was typed a moment ago is kept now;
    ``opened(Chat | None, list[ChatMessage])``; ``chats_changed()``; ``message_added(ChatMessage)`` at the end of the
    branch on show; ``branch_changed(list[ChatMessage])``, another branch of the same chat; ``answer_grew(message_id, str)``;
    ``answer_ended(ChatMessage)``; ``failed(Failure)``.
    """

    leaving = Signal()
    opened = Signal(object, list)
    chats_changed = Signal()
    message_added = Signal(object)
    branch_changed = Signal(list)
    answer_grew = Signal(int, str)
    answer_ended = Signal(object)
    failed = Signal(object)

    def __init__(self, store: ChatStore, client: EngineClient, settings: SettingsService, parent: QObject | None = None):
        super().__init__(parent)
        self.store, self.client = store, client
        self.options = ChatOptionsService(store, settings, self)
        self.chat: Chat | None = None
        self.messages: list[ChatMessage] = []
        self.tree = ChatTree()
        self.active: ActiveAnswer | None = None
        self.comparison = ComparisonRun(client, settings, self)
        self.comparison.ended.connect(self._on_comparison_ended)
        self._compare_answer: ChatMessage | None = None
        self._save_timer = QTimer(self, interval=SAVE_MS)
        self._save_timer.timeout.connect(self.save_partial)
        self._unsaved: dict[int, ChatMessage] = {}
        self._again = QTimer(self, interval=AGAIN_MS)
        self._again.timeout.connect(self._save_unsaved)
        client.events.connect(self._on_events)
        client.ended.connect(self._on_ended)

    # Chats

    def open(self, chat_id: int | None, message_id: int | None = None) -> bool:
        """Opens a chat, or an empty new one that is created with its first message. A running answer goes on.

        With ``message_id`` the branch on show is one that holds this message. False: it cannot be read, and the chat before
        stays; why comes by ``failed``.
        """
        self.leaving.emit()
        try:
            chat = self.store.chat(chat_id) if chat_id is not None else None
            messages = self.store.messages(chat.id) if chat is not None else []
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return False
        self.chat, self.tree = chat, ChatTree(messages)
        self._take_partial()
        for message in self._unsaved.values():
            self.tree.replace(message)
        self.messages = self.tree.path(self.chat.leaf_id if self.chat else None)
        if message_id in self.tree and message_id is not None and all(message.id != message_id for message in self.messages):
            self.messages = self.tree.path(self.tree.newest_leaf(message_id))
            self._keep_leaf()
        self.options.follow(self.chat)
        self.opened.emit(self.chat, self.messages)
        self.remember("last_chat", self.chat.id if self.chat else None)  # its failure is told last, so that it stays on show
        return True

    def refresh(self) -> None:
        """Reads the open chat's title, folder and options again after they were changed in the store."""
        if self.chat is not None:
            self.chat = self.store.chat(self.chat.id)

    def answering_in(self, chat_id: int) -> bool:
        """Whether an answer or comparison of this chat is running."""
        running = self.active.message if self.active else self._compare_answer
        return running is not None and running.chat_id == chat_id

    def answering_below(self, message_id: int) -> bool:
        """Whether the answer that is running comes after a message of the open chat."""
        running = self.active.message if self.active else self._compare_answer
        return running is not None and running.id in self.tree.following(message_id)

    def can_retry(self) -> bool:
        """Whether there is a question that could be asked again now."""
        return not self.client.busy and any(message.role == "user" for message in self.messages)

    # Branches

    def version_of(self, message_id: int) -> tuple[int, int]:
        """(place from 1, count) among the versions of a message; (1, 1) where there are no others."""
        if message_id not in self.tree:
            return 1, 1
        versions = self.tree.versions(message_id)
        return versions.index(message_id) + 1, len(versions)

    def switch(self, message_id: int, step: int) -> None:
        """Shows the version ``step`` places further with what follows it; nothing happens where there is none."""
        leaf = self.tree.leaf_beside(message_id, step) if message_id in self.tree else None
        if leaf is not None:
            self.show_branch(leaf)

    def edit(self, message_id: int, text: str, mode: ChatMode) -> bool:
        """Puts another version beside a message of the user's, with its attachments, and answers it. False: as for ``send``."""
        message = self.tree[message_id]
        return self._ask(text, mode, message.attachments, message.parent_id)

    def branch(self, message_id: int) -> None:
        """Copies the open chat up to a message into a new one and opens that."""
        self.leaving.emit()
        self.refresh()
        chat = self.chat
        if chat is None or message_id not in self.tree:
            return
        self._take_partial()
        title = tr("{title} (branch)", title=chat.title)
        try:
            path = [self._as_stopped(message) for message in self.tree.path(message_id)]
            copy = self.store.copy_chat(replace(chat, title=title, pinned=False), path)
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return
        self.open(copy.id)
        self.chats_changed.emit()

    def show_branch(self, leaf_id: int | None) -> None:
        """Shows the branch that ends with a message of the open chat."""
        self._take_partial()
        self.messages = self.tree.path(leaf_id)
        self._keep_leaf()
        self.branch_changed.emit(self.messages)

    def _keep_leaf(self) -> None:
        chat, leaf = self.chat, self.messages[-1].id if self.messages else None
        if chat is not None and chat.leaf_id != leaf:
            self.chat = replace(chat, leaf_id=leaf)
            self.kept(lambda: self.store.set_leaf(chat.id, leaf))

    def _take_partial(self) -> None:
        """The answer being written, as far as it is, so that its branch shows it when it is mounted anew."""
        if self.active is not None and self.active.message.id in self.tree:
            self.tree.replace(replace(self.active.message, content=self.active.text))

    def _as_stopped(self, message: ChatMessage) -> ChatMessage:
        """A message for a copy of the chat, in which an answer that is being written here ends where it is now."""
        if message.state != "streaming":
            return message
        compared = self._compare_answer is not None and self._compare_answer.id == message.id
        return replace(message, content=self.comparison.longest_text() if compared else message.content, state="stopped")

    # Asking

    def send(self, text: str, mode: ChatMode, attachments: Sequence[Attachment] = ()) -> bool:
        """Keeps the message and asks for an answer. False: nothing was sent, the reason came by ``failed``."""
        return self._ask(text, mode, attachments, self.messages[-1].id if self.messages else None)

    def _ask(self, text: str, mode: ChatMode, attachments: Sequence[Attachment], parent_id: int | None) -> bool:
        self.leaving.emit()
        text = clean_text(text)
        if not text.strip() and not attachments:
            self.failed.emit(Failure(tr("The prompt is empty: type something to answer."), retry=False))
            return False
        title = title_for(text, attachments)
        try:
            chat = self.chat or self.store.create_chat(title, options=self.options.for_new_chat)
            message = self.store.add_message(chat.id, "user", text, "sent", attachments=attachments, parent=parent_id)
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return False
        first = self.messages[0] if self.messages and parent_id is None else None
        if first is not None and chat.title == title_for(first.content, first.attachments):
            self.kept(lambda: self.store.rename_chat(chat.id, title))  # it was not the user who gave the old one
        if self.chat is None:
            self.options.created(chat)
        self.chat = self.store.chat(chat.id)
        self.remember("last_chat", chat.id)
        self._append(message)
        self.chats_changed.emit()
        return self.answer(mode)

    def answer(self, mode: ChatMode, question_id: int | None = None) -> bool:
        """Answers a message of the user's, the last one on show by default (once more, if it has an answer already)."""
        self.leaving.emit()
        asked = up_to_last_question(self.tree.path(question_id) if question_id in self.tree else self.messages)
        if not asked or self.chat is None:
            return False
        try:
            request = self._request(asked, "baseline" if mode == "baseline" else "dflash")
            reply = self.store.add_message(self.chat.id, "assistant", "", "streaming", parent=asked[-1].id)
        except (RequestError, StoreError) as error:
            self.failed.emit(Failure(str(error), retry=not isinstance(error, StoreError)))
            return False
        if mode == "compare":
            self._compare_answer = reply
            self._append(reply)
            self.comparison.start(asked[-1].content, request)
        else:
            self.active = ActiveAnswer(self.client.generate(request), reply, request)
            self._append(reply)
        self._save_timer.start()
        return True

    def _append(self, message: ChatMessage) -> None:
        """Shows a message that was just kept at the end of its branch."""
        self._take_partial()
        self.tree.add(message)
        before = self.messages[-1].id if self.messages else None
        if message.parent_id != before:
            self.messages = self.tree.path(message.parent_id) if message.parent_id is not None else []
            self.branch_changed.emit(self.messages)
        self.messages = [*self.messages, message]
        if self.chat is not None:
            self.chat = replace(self.chat, leaf_id=message.id)
        self.message_added.emit(message)

    def _request(self, asked: list[ChatMessage], mode: Mode) -> GenerationRequest:
        # A pair without a draft answers plainly: the engine says so in a Fallback, it is no error.
        wanted: Mode = "auto" if mode == "dflash" and self.client.info and not self.client.info.draft_name else mode
        options = self.options.current
        return GenerationRequest(options.turns(request_messages(asked)), wanted, **options.request_fields())

    # What comes back

    def _on_events(self, request_id: int, events: list[Timed]) -> None:
        active = self.active
        if active is None or active.request_id != request_id:
            return
        grown = []
        for timed in events:
            if isinstance(timed.event, TextDelta):
                grown.append(timed.event.text)
            elif isinstance(timed.event, Started) and timed.event.open_tag:
                active.opening = f"{timed.event.open_tag}\n"  # kept with the text, so that it says what was thought
                grown.append(active.opening)
            elif isinstance(timed.event, Finished):
                active.finished = timed.event
        delta = clean_text("".join(grown))
        if delta:
            active.parts.append(delta)
            self.answer_grew.emit(active.message.id, delta)

    def _on_ended(self, request_id: int, failure: Failure | None) -> None:
        active = self.active
        if active is None or active.request_id != request_id:
            return
        self.active = None
        finished = active.finished
        state: State = "failed" if failure else "done" if finished and finished.reason != "cancelled" else "stopped"
        text = kept_answer(clean_text(active.opening + finished.text) if finished else active.text)
        statistics = answer_statistics(finished, active.request) if finished else None
        self._finish_message(active.message, text, state, statistics, failure)

    def _on_comparison_ended(self, failure: Failure | None) -> None:
        reply, self._compare_answer = self._compare_answer, None
        if reply is None:
            return
        arm = self.comparison.best_arm()
        finished = arm.finished if arm else None
        state: State = "failed" if failure else "done" if finished and finished.reason != "cancelled" else "stopped"
        statistics = answer_statistics(finished, self.comparison.request) if finished else None
        self._finish_message(reply, kept_answer(clean_text(arm.text)) if arm else "", state, statistics, failure)

    def _finish_message(
        self, message: ChatMessage, text: str, state: State, statistics: dict[str, Any] | None, failure: Failure | None
    ) -> None:
        self._save_timer.stop()
        ended = replace(message, content=text, state=state, statistics=statistics)
        try:
            self._save(ended)
        except StoreError as error:
            failure = failure or Failure(str(error), retry=False)
            self._unsaved[ended.id] = ended
            self._again.start()
        self.tree.replace(ended)
        self.messages = [ended if known.id == ended.id else known for known in self.messages]
        self.answer_ended.emit(ended)
        if failure is not None:
            self.failed.emit(failure)

    # Saving

    def remember(self, key: str, value: object) -> None:
        """Keeps a small value; a disk that is full costs that value, never what the user was doing."""
        self.kept(lambda: self.store.set_setting(key, value))

    def kept(self, write: Callable[[], object]) -> bool:
        """Whether ``write`` could be done; why not comes by ``failed``."""
        try:
            write()
        except StoreError as error:
            self.failed.emit(Failure(str(error), retry=False))
            return False
        return True

    def save_partial(self) -> None:
        """Writes the text so far, if there is any new."""
        try:
            if self.active is not None and len(self.active.text) > self.active.saved_length:
                self.active.saved_length = len(self.active.text)
                self.store.update_message(self.active.message.id, content=self.active.text)
            elif self._compare_answer is not None and (text := self.comparison.longest_text()):
                self.store.update_message(self._compare_answer.id, content=text)
        except StoreError as error:
            self._save_timer.stop()  # one message is enough; the whole answer is tried again at its end
            self.failed.emit(Failure(str(error), retry=False))

    def _save(self, message: ChatMessage) -> None:
        self.store.update_message(message.id, message.content, message.state, message.statistics)

    def _save_unsaved(self) -> None:
        """Tries again what a full disk refused; the user was told the first time."""
        try:
            for message in list(self._unsaved.values()):
                self._save(message)
                del self._unsaved[message.id]
        except StoreError as error:
            log.warning("%d answers are not on the disk yet: %s", len(self._unsaved), error)
        else:
            self._again.stop()

    def close(self) -> None:
        """Tries once more to save what could not be saved, for the end of the program; the answer is stopped by then."""
        self._save_unsaved()
        self._again.stop()

    def stop(self) -> None:
        """Stops the answer or comparison; what is there stays."""
        self.comparison.stop()
        self.client.stop()
        self.save_partial()
