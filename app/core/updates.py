"""The signed update feed: reads it, checks its signature, and says whether it offers something newer."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app.core.words import tr
from engine.models.paths import resources_folder

FEED_LIMIT = 256 * 1024  # bytes
_VERSION = re.compile(r"\d+(\.\d+){1,3}")
_FIELDS = ("version", "minimum_macos", "published", "notes", "page", "sha256")


class FeedError(Exception):
    """The feed cannot be trusted or read. ``str(error)`` is one line for the user."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where this build looks for updates; both empty in a build without a feed. ``public_key``: Ed25519, base64."""

    feed: str
    public_key: str

    @property
    def usable(self) -> bool:
        return bool(self.feed and self.public_key)


@dataclass(frozen=True, slots=True)
class Release:
    """What the feed offers. ``notes`` is plain text, ``page`` where it is downloaded, ``sha256`` the disk image's."""

    version: str
    minimum_macos: str
    published: str
    notes: str
    page: str
    sha256: str


def source() -> Source:
    """The feed this build was made with."""
    try:
        values = json.loads((resources_folder() / "updates.json").read_text(encoding="utf-8"))
        return Source(str(values["feed"]), str(values["public_key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Source("", "")


def read_feed(content: bytes, public_key: str) -> Release:
    """The release in ``content``: {"payload": TEXT, "signature": BASE64 of Ed25519 over TEXT}. Raises ``FeedError``.

    Nothing of the payload is read before its signature holds.
    """
    from nacl.exceptions import BadSignatureError
    from nacl.exceptions import ValueError as KeyProblem
    from nacl.signing import VerifyKey

    try:
        envelope = json.loads(content)
        payload, signature = envelope["payload"].encode(), base64.b64decode(envelope["signature"], validate=True)
        VerifyKey(base64.b64decode(public_key, validate=True)).verify(payload, signature)
    except (BadSignatureError, KeyProblem, binascii.Error) as error:
        raise FeedError(tr("The update feed is not signed by Slipstream's makers and was ignored.")) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FeedError(tr("The update feed cannot be read: try again later.")) from error
    return _release(json.loads(payload))


def _release(values: dict[str, Any]) -> Release:
    if not isinstance(values, dict) or not all(isinstance(values.get(name), str) for name in _FIELDS):
        raise FeedError(tr("The update feed lacks something: try again later."))
    release = Release(**{name: values[name] for name in _FIELDS})
    if not _VERSION.fullmatch(release.version) or not _VERSION.fullmatch(release.minimum_macos):
        raise FeedError(tr("The update feed names no version: try again later."))
    if urlsplit(release.page).scheme != "https":
        raise FeedError(tr("The update feed leads to an unsafe address and was ignored."))
    return release


def is_newer(version: str, current: str) -> bool:
    """Whether ``version`` comes after ``current``; both are numbers with dots."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    return numbers(version) > numbers(current)
