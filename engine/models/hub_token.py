"""The hub's access token: kept in the system's keychain, else taken from HF_TOKEN or the hub's own token file. Never logged."""

from __future__ import annotations

from engine.errors import ModelError

SERVICE, ACCOUNT = "Slipstream", "hub access token"


def read_token() -> str | None:
    """The token to use, None where there is none. A keychain that is locked or absent counts as empty."""
    from huggingface_hub import get_token

    return _from_keychain() or get_token()


def save_token(token: str) -> None:
    """Keeps ``token`` in the keychain; an empty one is forgotten there. Raises ``ModelError`` where there is no keychain."""
    import keyring
    from keyring.errors import KeyringError, PasswordDeleteError

    token = token.strip()
    if any(character.isspace() or not character.isascii() for character in token):
        raise ModelError("This is not an access token: copy the whole of it, it begins with hf_.")
    try:
        if token:
            keyring.set_password(SERVICE, ACCOUNT, token)
        else:
            keyring.delete_password(SERVICE, ACCOUNT)
    except PasswordDeleteError:
        return  # there was none
    except (KeyringError, RuntimeError) as error:
        raise ModelError("The keychain does not take the token: unlock it, or set HF_TOKEN instead.") from error


def _from_keychain() -> str | None:
    import keyring

    try:
        return keyring.get_password(SERVICE, ACCOUNT)
    except Exception:  # each system's keychain fails in its own way, and asking must go on without a token
        return None
