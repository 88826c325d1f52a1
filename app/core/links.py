"""Links of the scheme ``slipstream:``, which arrive from anywhere."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from app.core.sanitize import clean_text
from app.core.words import tr

SCHEME = "slipstream"
PROMPT_LIMIT = 20_000  # characters


class LinkError(Exception):
    """One line for the user: why it cannot be opened."""


def prompt_of(link: str) -> str:
    """The text that ``slipstream:new?prompt=TEXT`` puts into the message field; empty for ``slipstream:`` alone.

    A link never sends: it comes from anywhere. Raises ``LinkError``.
    """
    parts = urlsplit(link)
    action = (parts.netloc or parts.path).strip("/")
    if parts.scheme != SCHEME or action not in ("", "new"):
        raise LinkError(tr("Slipstream does not know what this link asks for."))
    prompt = clean_text(parse_qs(parts.query).get("prompt", [""])[0])
    if len(prompt) > PROMPT_LIMIT:
        raise LinkError(tr("The link's text has more than {count} characters: paste it instead.", count=PROMPT_LIMIT))
    return prompt
