"""A chat as a tree: every message knows the one before it, and messages after the same one are versions of one turn."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.chat import ChatMessage


class ChatTree:
    """All messages of one chat. Add them in the order of their ids; a message whose parent is missing begins a branch."""

    def __init__(self, messages: Iterable[ChatMessage] = ()):
        self._messages: dict[int, ChatMessage] = {}
        self._children: dict[int | None, list[int]] = {}
        self._forks: set[int | None] = set()  # the messages, and None, that several have come after
        for message in messages:
            self.add(message)

    def __contains__(self, message_id: int | None) -> bool:
        return message_id in self._messages

    def __getitem__(self, message_id: int) -> ChatMessage:
        return self._messages[message_id]

    def add(self, message: ChatMessage) -> None:
        """Puts a message after its parent, as the newest version."""
        self._messages[message.id] = message
        versions = self._children.setdefault(self._parent(message), [])
        versions.append(message.id)
        if len(versions) > 1:
            self._forks.add(self._parent(message))

    def replace(self, message: ChatMessage) -> None:
        """The same message with other content; one that is not there is left out."""
        if message.id in self._messages:
            self._messages[message.id] = message

    def remove(self, message_id: int) -> None:
        """Takes a message and all that follows it out."""
        self._children[self._parent(self._messages[message_id])].remove(message_id)
        for gone in self.following(message_id):
            del self._messages[gone]
            self._children.pop(gone, None)

    def path(self, leaf_id: int | None) -> list[ChatMessage]:
        """The branch that ends with ``leaf_id``, from its beginning; the newest branch where there is no such message."""
        at = leaf_id if leaf_id in self._messages else max(self._messages, default=None)
        turns = []
        while at is not None:
            message = self._messages[at]
            turns.append(message)
            at = self._parent(message)
        return turns[::-1]

    def versions(self, message_id: int) -> list[int]:
        """The messages after the same one, ``message_id`` among them, oldest first."""
        return self._children[self._parent(self._messages[message_id])]

    def has_versions(self, messages: Iterable[ChatMessage]) -> bool:
        """Whether any of ``messages`` has other versions; quick in a long chat without any."""
        forks = {parent for parent in self._forks if len(self._children.get(parent, ())) > 1}
        return bool(forks) and any(self._parent(message) in forks for message in messages)

    def following(self, message_id: int) -> list[int]:
        """``message_id`` and all messages after it, in every branch."""
        found = [message_id]
        for each in found:
            found += self._children.get(each, [])
        return found

    def newest_leaf(self, message_id: int) -> int:
        """The end of the branch through ``message_id`` that was written to last."""
        return max(self.following(message_id))

    def leaf_beside(self, message_id: int, step: int) -> int | None:
        """The end of the newest branch through the version ``step`` places further; None where there is no such version."""
        versions = self.versions(message_id)
        place = versions.index(message_id) + step
        return self.newest_leaf(versions[place]) if 0 <= place < len(versions) else None

    def _parent(self, message: ChatMessage) -> int | None:
        # A parent is always older: whatever a damaged file says, there is no circle.
        known = message.parent_id in self._messages and message.parent_id is not None and message.parent_id < message.id
        return message.parent_id if known else None
