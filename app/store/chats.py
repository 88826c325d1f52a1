"""The chat store: every chat, message and small setting, committed to SQLite before a call returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.chat import Chat, ChatMessage, Role, State


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A chat found by search. ``message_id`` and ``excerpt`` are the newest match; None and the title if only the title matched."""

    chat: Chat
    message_id: int | None
    excerpt: str


class ChatStore:
    """Use from one thread. Every call may raise ``StoreError``; a call that raised changed nothing.

    ``moved_aside`` is where a damaged file was put at opening, None if it was whole.
    """

    moved_aside: Path | None

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it and its folder."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file; may be called twice."""
        raise NotImplementedError

    def create_chat(self, title: str) -> Chat:
        raise NotImplementedError

    def chat(self, chat_id: int) -> Chat | None:
        raise NotImplementedError

    def chats(self) -> list[Chat]:
        """All chats, the one last written to first."""
        raise NotImplementedError

    def rename_chat(self, chat_id: int, title: str) -> None:
        raise NotImplementedError

    def delete_chat(self, chat_id: int) -> None:
        """Deletes a chat with its messages; nothing happens if it is already gone."""
        raise NotImplementedError

    def messages(self, chat_id: int) -> list[ChatMessage]:
        """The messages of a chat, oldest first."""
        raise NotImplementedError

    def add_message(
        self, chat_id: int, role: Role, content: str, state: State, statistics: Mapping[str, Any] | None = None
    ) -> ChatMessage:
        """Appends a message and returns it as kept (text cleaned). Raises ``StoreError`` if the chat is gone."""
        raise NotImplementedError

    def update_message(
        self,
        message_id: int,
        content: str | None = None,
        state: State | None = None,
        statistics: Mapping[str, Any] | None = None,
    ) -> bool:
        """Changes what is given; None leaves a field alone. False: the message is gone (its chat was deleted meanwhile).

        While an answer streams, call this about once a second: each call writes the whole text.
        """
        raise NotImplementedError

    def search(self, text: str, limit: int = 50) -> list[SearchHit]:
        """Chats whose title or messages contain every word of ``text``, the one last written to first; a hit a chat."""
        raise NotImplementedError

    def setting(self, key: str, default: Any = None) -> Any:
        """A small value kept with the chats (last chat, drafts); ``default`` where there is none."""
        raise NotImplementedError

    def set_setting(self, key: str, value: Any) -> None:
        """Keeps ``value``, anything JSON can hold."""
        raise NotImplementedError

    def recover(self) -> int:
        """Marks answers that were still streaming when the program ended as interrupted; returns how many. Call once at start."""
        raise NotImplementedError
