"""The window's side of a chat's branches: editing, versions, branching off and deleting messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.chat import ChatMessage
from app.core.words import tr

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class Branching(QObject):
    """Each method takes a message's id; without one it is about the message that has the focus, else the last that fits."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._talk = window, window.services.conversation
        self._transcript = window.transcript
        self._transcript.version_of = self._talk.version_of
        self._transcript.retry_asked.connect(self.answer_again)
        self._transcript.switch_asked.connect(self._talk.switch)
        self._transcript.edit_asked.connect(self.edit)
        self._transcript.edited.connect(self.send_edited)
        self._transcript.branch_asked.connect(self.branch)
        self._transcript.delete_asked.connect(self.delete)
        self._talk.branch_changed.connect(self._on_branch_changed)

    def edit(self, message_id: int | None = None) -> None:
        """Opens an editor in the message's place."""
        asked = self._message(message_id, "user")
        if asked is None:
            return
        self._window.do.show_chat()
        if not self._transcript.edit(asked.id):
            text = tr("This message is too long to be edited in its place: copy it into a new one.")
            self._window.banner.show_message(text, until="chat")

    def send_edited(self, message_id: int, text: str) -> None:
        """Sends the edited message as another version; while something else runs it stays in its editor."""
        if not self._window.situation().idle:
            self._window.banner.show_message(tr("The engine is not ready yet: your text stays here until it is."), until="ready")
            return
        self._window.banner.hide()
        if self._talk.edit(message_id, text, self._window.services.settings.current.mode):
            self._transcript.editing.sent(message_id)

    def answer_again(self, answer_id: int | None = None) -> None:
        """Asks for another version of an answer, of the last one by default."""
        if self._window.situation().idle:
            self._window.banner.hide()
            question = self._talk.tree[answer_id].parent_id if answer_id in self._talk.tree and answer_id is not None else None
            self._talk.answer(self._window.services.settings.current.mode, question)

    def step(self, step: int) -> None:
        """Shows the version before or after."""
        several = [message for message in self._talk.messages if self._talk.version_of(message.id)[1] > 1]
        current = self._transcript.current_id()
        chosen = next((message for message in several if message.id == current), several[-1] if several else None)
        if chosen is not None:
            self._talk.switch(chosen.id, step)

    def branch(self, message_id: int | None = None) -> None:
        """Goes on from a message in a chat of its own."""
        last = self._message(message_id)
        if last is not None:
            self._talk.branch(last.id)

    def delete(self, message_id: int | None = None) -> None:
        """Deletes a message with what follows."""
        last = self._message(message_id)
        if last is not None:
            self._window.services.shelf.delete_message(last.id)

    def _message(self, message_id: int | None, role: str = "") -> ChatMessage | None:
        wanted = message_id if message_id is not None else self._transcript.current_id()
        fitting = [message for message in self._talk.messages if not role or message.role == role]
        return next((message for message in fitting if message.id == wanted), fitting[-1] if fitting else None)

    def _on_branch_changed(self, messages: list[ChatMessage]) -> None:
        window = self._window
        self._transcript.show_branch(messages)
        window.reveal_chat()
        window.writing.count()
        window.update_commands()
