"""The key that other programs must send to the local server: kept in the system's keychain, never logged."""

from __future__ import annotations

import logging
import secrets

SERVICE, ACCOUNT = "Slipstream", "server key"
log = logging.getLogger(__name__)


def new_key() -> str:
    """A key that nobody guesses."""
    return f"sk-slipstream-{secrets.token_urlsafe(24)}"


def read_key() -> str:
    """The kept key, "" where there is none. A keychain that is locked or absent counts as empty."""
    import keyring

    try:
        return keyring.get_password(SERVICE, ACCOUNT) or ""
    except Exception:  # each system's keychain fails in its own way, and so there is no key
        log.warning("the keychain could not be read")
        return ""


def save_key(key: str) -> bool:
    """Whether the keychain took ``key``."""
    import keyring

    try:
        keyring.set_password(SERVICE, ACCOUNT, key)
    except Exception as error:
        log.warning("the keychain did not take the server's key: %s", type(error).__name__)
        return False
    return read_key() == key  # a keychain that is switched off takes everything and keeps nothing
