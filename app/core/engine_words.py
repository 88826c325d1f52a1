"""The engine's sentences in the user's language: each is matched to the template that it was made from."""

from __future__ import annotations

import re
import string
from functools import lru_cache

from app.core.engine_sentences import IN_WINDOW, SENTENCES
from app.core.words import separated, tr, unbroken

_NUMBER = re.compile(r"(\d{1,3}(,\d{3})+(\.\d+)?|\d+\.\d+)( (GB|MB|kB|s))?")


def engine_words(text: str) -> str:
    """``text`` of an error or event of the engine in the user's language; its own words where it is not known.

    A message and its next action, joined by a colon, may be two sentences of the engine.
    """
    whole = _translated(text)
    if whole is not None:
        return whole
    what, colon, action = text.rpartition(": ")
    first, second = _translated(what), _translated(action)
    return f"{first}{colon}{second}" if first is not None and second is not None else unbroken(text)


def _translated(text: str) -> str | None:
    for template, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return tr(IN_WINDOW.get(template, template), **{name: _value(value) for name, value in found.groupdict().items()})
    return None


def _value(text: str) -> str:
    return separated(text) if _NUMBER.fullmatch(text) else engine_words(text)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    # The longest first: what a template of fewer words takes for a name may be words of another.
    ordered = sorted(SENTENCES, key=lambda sentence: -len(re.sub(r"\{\w+\}", "", sentence)))
    return tuple((template, _pattern(template)) for template in ordered)


def _pattern(template: str) -> re.Pattern[str]:
    """A pattern that matches what ``template`` makes, with a group for each ``{name}``."""
    parts = []
    for literal, name, _spec, _conversion in string.Formatter().parse(template):
        parts.append(re.escape(literal) + (f"(?P<{name}>.+?)" if name else ""))
    return re.compile("".join(parts), re.DOTALL)
