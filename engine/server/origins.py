"""How browsers name where a page comes from."""

from __future__ import annotations

import re

USUAL_PORTS = {"http": ":80", "https": ":443"}
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*://[^/?#\s]+)/?")


def as_origin(text: str) -> str | None:
    """Scheme, host and port of ``text``, which holds nothing else; None where it does, as "null" of files and closed-off frames.

    Browsers leave out the port that goes without saying.
    """
    found = _ORIGIN.fullmatch(text.lower())
    if found is None:
        return None
    return found[1].removesuffix(USUAL_PORTS.get(found[1].partition(":")[0], ""))
