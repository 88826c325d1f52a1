"""Chats that come in from a file: written piece by piece out of sight, and shown all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.core.chat import Chat, ChatMessage
from app.store.chats import HIDDEN, ChatStore
from app.store.connection import transaction
from app.store.errors import in_words
from app.store.rows import NewIds, insert_end, insert_head, insert_messages

PIECE = 20_000  # characters written in one transaction, which puts them into the search index too


class IncomingChats:
    """On the connection of ``chats``. What is neither shown nor dropped is gone after the next start.

    Any step may raise ``StoreError``.
    """

    def __init__(self, chats: ChatStore):
        self._path, self._db = chats.database
        self.ids: list[int] = []

    def write(self, chat: Chat, messages: Sequence[ChatMessage]) -> Iterator[int]:
        """Copies a whole chat with its own times in small steps; each yields how many characters it wrote."""
        with in_words(self._path), transaction(self._db):
            kept = insert_head(self._db, chat, HIDDEN)
        self.ids.append(kept.id)
        new: NewIds = {}
        piece: list[ChatMessage] = []
        for message in messages:
            piece.append(message)
            if characters(piece) > PIECE:
                yield self._write(kept.id, piece, new)
                piece = []
        yield self._write(kept.id, piece, new)
        with in_words(self._path), transaction(self._db):
            insert_end(self._db, kept, new)

    def show(self) -> None:
        """Shows every chat that was written, all at once."""
        with in_words(self._path), transaction(self._db):
            self._db.executemany("UPDATE chats SET deleted_at = NULL WHERE id = ?", [(chat_id,) for chat_id in self.ids])

    def drop(self) -> Iterator[None]:
        """Takes what was written away again, one message a step, the last one first."""
        for chat_id in self.ids:
            query = "DELETE FROM messages WHERE id = (SELECT max(id) FROM messages WHERE chat_id = ?)"
            gone = 1
            while gone:
                with in_words(self._path), transaction(self._db):
                    gone = self._db.execute(query, (chat_id,)).rowcount
                yield
            with in_words(self._path), transaction(self._db):
                self._db.execute("DELETE FROM chats WHERE id = ?", (chat_id,))

    def _write(self, chat_id: int, piece: list[ChatMessage], new: NewIds) -> int:
        with in_words(self._path), transaction(self._db):
            insert_messages(self._db, chat_id, piece, new)
        return characters(piece)


def characters(messages: Sequence[ChatMessage]) -> int:
    """How much there is to write."""
    return sum(len(message.content) + sum(len(file.text) for file in message.attachments) for message in messages)
