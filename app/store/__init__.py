"""Keeps every chat on disk: ``ChatStore`` over SQLite, and the error it raises."""

from app.store.chats import ChatStore, SearchHit
from app.store.comparisons import ComparisonStore
from app.store.errors import StoreError

__all__ = ["ChatStore", "ComparisonStore", "SearchHit", "StoreError"]
