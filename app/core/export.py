"""A chat as a file for other programs: Markdown to read, JSON to process."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.chat import Chat, ChatMessage


def chat_markdown(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """The chat as Markdown, ending in one newline."""
    raise NotImplementedError


def chat_json(chat: Chat, messages: Sequence[ChatMessage]) -> str:
    """The chat as one JSON object (``title``, times, ``messages``), ending in one newline."""
    raise NotImplementedError


def file_name(chat: Chat, extension: str) -> str:
    """A file name for the save dialog that every file system takes."""
    raise NotImplementedError
