"""The hub's access token: kept in the system's keychain, else taken from HF_TOKEN or the hub's own token file. Never logged."""

from __future__ import annotations


def read_token() -> str | None:
    """The token to use, None where there is none."""
    raise NotImplementedError


def save_token(token: str) -> None:
    """Keeps ``token`` in the keychain; an empty one is forgotten. Raises ``ModelError`` where there is no keychain."""
    raise NotImplementedError
