"""The engine's sentences in the user's language: each is matched to the template that it was made from."""

from __future__ import annotations

import re
import string
from functools import lru_cache

from app.core.words import mark, tr

TEMPLATES: tuple[str, ...] = (
    mark("You chose plain decoding."),
    mark("This model has no draft."),
)


def engine_words(text: str) -> str:
    """``text`` of an error or event of the engine in the user's language; unchanged where no template fits."""
    for template, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return tr(template, **{name: engine_words(value) for name, value in found.groupdict().items()})
    return text


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, _pattern(template)) for template in TEMPLATES)


def _pattern(template: str) -> re.Pattern[str]:
    """A pattern that matches what ``template`` makes, with a group for each ``{name}``."""
    parts = []
    for literal, name, _spec, _conversion in string.Formatter().parse(template):
        parts.append(re.escape(literal) + (f"(?P<{name}>.+?)" if name else ""))
    return re.compile("".join(parts), re.DOTALL)
