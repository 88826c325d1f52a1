"""The open chat: sends prompts, keeps every message and partial answer, and tells the window what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.chat import Attachment, Chat, ChatMessage, State, request_messages, title_from, up_to_last_question
from app.core.figures import answer_statistics
from app.core.sanitize import clean_text
from app.services.chat_options import ChatOptionsService
from app.services.comparison_run import ComparisonRun
from app.services.engine_client import EngineClient, Timed
from app.services.settings import ChatMode, SettingsService
from app.store import ChatStore, StoreError
from app.worker import Failure
from engine import Finished, GenerationRequest, Mode, RequestError, Started, TextDelta

SAVE_MS = 500


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
    """Signals: ``opened(Chat | None, list[ChatMessage])``; ``chats_changed()``; ``message_added(ChatMessage)``;
    ``answer_grew(message_id, str)``; ``answer_ended(ChatMessage)``; ``failed(Failure)``.
    """

    opened = Signal(object, list)
    chats_changed = Signal()
    message_added = Signal(object)
    answer_grew = Signal(int, str)
    answer_ended = Signal(object)
    failed = Signal(object)

    def __init__(self, store: ChatStore, client: EngineClient, settings: SettingsService, parent: QObject | None = None):
        super().__init__(parent)
        self.store, self.client = store, client
        self.options = ChatOptionsService(store, settings, self)
        self.chat: Chat | None = None
        self.messages: list[ChatMessage] = []
        self.active: ActiveAnswer | None = None
        self.comparison = ComparisonRun(client, self)
        self.comparison.ended.connect(self._on_comparison_ended)
        self._compare_answer: ChatMessage | None = None
        self._save_timer = QTimer(self, interval=SAVE_MS)
        self._save_timer.timeout.connect(self.save_partial)
        client.events.connect(self._on_events)
        client.ended.connect(self._on_ended)

    # Chats

    def open(self, chat_id: int | None) -> None:
        """Opens a chat, or an empty new one that is created with its first message. A running answer goes on."""
        self.chat = self.store.chat(chat_id) if chat_id is not None else None
        self.messages = self.store.messages(self.chat.id) if self.chat is not None else []
        if self.active is not None and self.chat is not None and self.active.message.chat_id == self.chat.id:
            self.save_partial()
            self.messages = self.store.messages(self.chat.id)
        self.options.follow(self.chat)
        self.opened.emit(self.chat, self.messages)
        self.remember("last_chat", self.chat.id if self.chat else None)  # its failure is told last, so that it stays on show

    def rename(self, chat_id: int, title: str) -> None:
        """Gives a chat another title; an empty one changes nothing."""
        wanted = bool(clean_text(title).strip())
        renamed = wanted and self._kept(lambda: self.store.rename_chat(chat_id, title_from(title)))
        if renamed and self.chat is not None and self.chat.id == chat_id:
            self.chat = self.store.chat(chat_id)
        self.chats_changed.emit()

    def delete(self, chat_id: int) -> None:
        """Deletes a chat; an answer being written in it is stopped first."""
        if self.answering_in(chat_id):
            self.client.stop()
        if self._kept(lambda: self.store.delete_chat(chat_id)) and self.chat is not None and self.chat.id == chat_id:
            self.open(None)
        self.chats_changed.emit()

    def answering_in(self, chat_id: int) -> bool:
        """Whether an answer or comparison of this chat is running."""
        running = self.active.message if self.active else self._compare_answer
        return running is not None and running.chat_id == chat_id

    def can_retry(self) -> bool:
        """Whether there is a question that could be asked again now."""
        return not self.client.busy and any(message.role == "user" for message in self.messages)

    # Asking

    def send(self, text: str, mode: ChatMode, attachments: Sequence[Attachment] = ()) -> bool:
        """Keeps the message and asks for an answer. False: nothing was sent, the reason came by ``failed``."""
        text = clean_text(text)
        if not text.strip() and not attachments:
            self.failed.emit(Failure("The prompt is empty: type something to answer."))
            return False
        try:
            title = title_from(text if text.strip() else attachments[0].name)
            chat = self.chat or self.store.create_chat(title, options=self.options.for_new_chat)
            message = self.store.add_message(chat.id, "user", text, "sent", attachments=attachments)
        except StoreError as error:
            self.failed.emit(Failure(str(error)))
            return False
        self.chat = self.store.chat(chat.id)
        self.options.created(chat)
        self.remember("last_chat", chat.id)
        self.messages.append(message)
        self.message_added.emit(message)
        self.chats_changed.emit()
        return self.answer(mode)

    def answer(self, mode: ChatMode) -> bool:
        """Answers the chat's last user message (once more, if it has an answer already)."""
        asked = up_to_last_question(self.messages)
        if not asked or self.chat is None:
            return False
        try:
            request = self._request(asked, "baseline" if mode == "baseline" else "dflash")
            reply = self.store.add_message(self.chat.id, "assistant", "", "streaming")
        except (RequestError, StoreError) as error:
            self.failed.emit(Failure(str(error)))
            return False
        self.messages.append(reply)
        if mode == "compare":
            self._compare_answer = reply
            self.message_added.emit(reply)
            self.comparison.start(asked[-1].content, request)
        else:
            self.active = ActiveAnswer(self.client.generate(request), reply, request)
            self.message_added.emit(reply)
        self._save_timer.start()
        return True

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
        text = clean_text(active.opening + finished.text) if finished else active.text
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
        self._finish_message(reply, clean_text(arm.text) if arm else "", state, statistics, failure)

    def _finish_message(
        self, message: ChatMessage, text: str, state: State, statistics: dict[str, Any] | None, failure: Failure | None
    ) -> None:
        self._save_timer.stop()
        try:
            self.store.update_message(message.id, content=text, state=state, statistics=statistics)
        except StoreError as error:
            failure = failure or Failure(str(error))
        ended = ChatMessage(message.id, message.chat_id, "assistant", text, state, message.created_at, statistics)
        self.messages = [ended if known.id == ended.id else known for known in self.messages]
        self.answer_ended.emit(ended)
        if failure is not None:
            self.failed.emit(failure)

    # Saving

    def remember(self, key: str, value: object) -> None:
        """Keeps a small value; a disk that is full costs that value, never what the user was doing."""
        self._kept(lambda: self.store.set_setting(key, value))

    def _kept(self, write: Callable[[], object]) -> bool:
        try:
            write()
        except StoreError as error:
            self.failed.emit(Failure(str(error)))
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
            self.failed.emit(Failure(str(error)))

    def stop(self) -> None:
        """Stops the answer or comparison; what is there stays."""
        self.comparison.stop()
        self.client.stop()
        self.save_partial()
