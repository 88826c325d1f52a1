"""The web pages that may ask the local server, as the user writes them: addresses with spaces, commas or lines between."""

from __future__ import annotations

import re

from engine.server.origins import as_origin


def origins_of(text: str) -> tuple[str, ...]:
    """The pages that ``text`` names as browsers do; "*" is all of them. What is no page's address is left out."""
    return tuple(dict.fromkeys(origin for word in _words(text) if (origin := word if word == "*" else as_origin(word))))


def not_origins(text: str) -> tuple[str, ...]:
    """The words of ``text`` that name no page."""
    return tuple(word for word in _words(text) if word != "*" and as_origin(word) is None)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", text) if word]
