"""What is done to whole chats: rename, pin, put into folders, delete, and take deleting back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.core.chat import title_for, title_from
from app.core.sanitize import clean_text
from app.services.conversation import Conversation
from app.store import ChatStore, StoreError
from app.worker import Failure

KEPT_DAYS = 30
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What was deleted: a chat, or in it a message with all that followed (``message_id``)."""

    chat_id: int
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What can be brought back: its title or first words, when it was deleted (seconds since 1970), of a message also the chat."""

    deletion: Deletion
    words: str
    at: float
    chat: str = ""


class Shelf(QObject):
    """``deleted(Deletion)`` follows what can be taken back, ``settled()`` what was taken back or no longer can be; ``purged()``
    what was taken off the disk; the list of chats follows ``Conversation.chats_changed``.
    """

    deleted = Signal(object)
    settled = Signal()
    purged = Signal()

    def __init__(self, store: ChatStore, conversation: Conversation, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._talk = store, conversation
        self.deletions: list[Deletion] = []

    def rename(self, chat_id: int, title: str) -> None:
        """Gives a chat another title; an empty one changes nothing."""
        if clean_text(title).strip():
            self._change(lambda: self._store.rename_chat(chat_id, title_from(title)))
        else:
            self._talk.chats_changed.emit()

    def pin(self, chat_id: int, pinned: bool) -> None:
        """Keeps a chat above all others, or no longer."""
        self._change(lambda: self._store.pin_chat(chat_id, pinned))

    def move(self, chat_id: int, folder: str) -> None:
        """Puts a chat into a folder, which begins to be there with its first chat; "" takes it out."""
        self._change(lambda: self._store.move_chat(chat_id, folder))

    def rename_folder(self, name: str, new: str) -> None:
        """Gives a folder another name (that of another one: they become one); an empty one changes nothing."""
        if clean_text(new).strip():
            self._change(lambda: self._store.rename_folder(name, new))
        else:
            self._talk.chats_changed.emit()

    def dissolve_folder(self, name: str) -> None:
        """Takes all chats out of a folder, which is gone then."""
        self._change(lambda: self._store.rename_folder(name, ""))

    # Deleting

    def delete(self, chat_id: int) -> None:
        """Deletes a chat until ``undo``; an answer being written in it is stopped first."""
        talk = self._talk
        if talk.answering_in(chat_id):
            talk.stop()
        if talk.kept(lambda: self._store.delete_chat(chat_id)):
            if talk.chat is not None and talk.chat.id == chat_id:
                talk.open(None)
            self._note(Deletion(chat_id))
        talk.chats_changed.emit()

    def delete_message(self, message_id: int) -> None:
        """Deletes a message of the open chat with all that follows it, until ``undo``."""
        talk = self._talk
        if talk.chat is None or message_id not in talk.tree:
            return
        if talk.answering_below(message_id):
            talk.stop()
        if not talk.kept(lambda: self._store.delete_messages(message_id)):
            return
        beside = talk.tree.leaf_beside(message_id, -1) or talk.tree.leaf_beside(message_id, 1)
        leaf = beside or talk.tree[message_id].parent_id
        talk.tree.remove(message_id)
        talk.show_branch(leaf)
        self._note(Deletion(talk.chat.id, message_id))

    def undo(self) -> None:
        """Brings back what was deleted last and goes there."""
        if not self.deletions:
            return
        chat_id, message_id = self.deletions[-1].chat_id, self.deletions[-1].message_id
        if message_id is None:
            restored = self._talk.kept(lambda: self._store.restore_chat(chat_id))
        else:
            restored = self._talk.kept(lambda: self._store.restore_messages(message_id))
        if restored:
            self.deletions.pop()
            self.settled.emit()
            self._talk.open(chat_id, message_id)
            self._talk.chats_changed.emit()

    def all_deleted(self) -> list[Deleted]:
        """The deleted chats and messages, the newest first; none where they cannot be read."""
        try:
            chats = [Deleted(Deletion(chat.id), chat.title, at) for chat, at in self._store.deleted_chats()]
            messages = [
                Deleted(Deletion(chat.id, message.id), title_for(message.content, message.attachments), at, chat.title)
                for chat, message, at in self._store.deleted_messages()
            ]
        except StoreError as error:
            self._talk.failed.emit(Failure(str(error), retry=False))
            return []
        return sorted(chats + messages, key=lambda each: -each.at)

    def restore(self, chat_id: int, message_id: int | None = None) -> None:
        """Brings back a chat that was deleted some time ago, or in it a message with what followed."""
        self._forget(lambda deletion: deletion == Deletion(chat_id, message_id))
        if message_id is None:
            self._change(lambda: self._store.restore_chat(chat_id))
            return
        self._change(lambda: self._store.restore_messages(message_id))
        if self._talk.chat is not None and self._talk.chat.id == chat_id:
            self._talk.open(chat_id, message_id)

    def delete_for_good(self, chat_ids: list[int], message_ids: Sequence[int] = ()) -> None:
        """Takes deleted chats and messages off the disk."""
        self._change(lambda: self._store.purge_chats(chat_ids))
        self._change(lambda: self._store.purge_messages(message_ids))
        self._forget(lambda deletion: deletion.chat_id in chat_ids or self._is_gone(deletion.message_id))
        self.purged.emit()

    def tidy(self) -> None:
        """Takes off the disk what was deleted more than ``KEPT_DAYS`` ago. For the start of the program."""
        try:
            if self._store.purge_deleted(before=time.time() - KEPT_DAYS * 86_400):
                self.purged.emit()
        except StoreError as error:
            log.warning("old deleted chats stay on the disk: %s", error)

    def _note(self, deletion: Deletion) -> None:
        self.deletions.append(deletion)
        self.deleted.emit(deletion)

    def _forget(self, gone: Callable[[Deletion], bool]) -> None:
        self.deletions = [deletion for deletion in self.deletions if not gone(deletion)]
        self.settled.emit()

    def _is_gone(self, message_id: int | None) -> bool:
        """Whether a message is off the disk, by itself or with the one before it."""
        return message_id is not None and not self._store.has_message(message_id)

    def _change(self, write: Callable[[], object]) -> None:
        if self._talk.kept(write):
            self._talk.refresh()
        self._talk.chats_changed.emit()
