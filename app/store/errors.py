"""The one error of the store."""

from __future__ import annotations


class StoreError(Exception):
    """Chats could not be read or written. ``str(error)`` is one line: what is wrong, and what to do next."""
