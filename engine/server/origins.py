"""How browsers name where a page comes from."""

from __future__ import annotations

import re

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*://[^/?#\s]+)/?")


def as_origin(text: str) -> str | None:
    """Scheme, host and port of ``text``, which holds nothing else; None where it does, as "null" of files and closed-off frames."""
    found = _ORIGIN.fullmatch(text.lower())
    return found[1] if found else None
