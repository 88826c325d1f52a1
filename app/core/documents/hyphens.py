"""Joins words that are divided at the end of a line, and keeps the hyphens that belong to a word."""

from __future__ import annotations

import re

# A word's first part, the hyphen, and the rest with what follows it up to the next space.
_DIVIDED = re.compile("([^\\W\\d_]+)([-\u2010\u00ad])\n([^\\W\\d_]+)(\\S*)[ \t]?\n?")
_NUMBERS = re.compile(r"(?<=\d)-\n(?=\d)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_AFTER_A_HYPHEN = frozenset({"and", "or", "to", "und", "oder", "bis", "bzw"})  # "Ein- und Ausgabe" is not divided
_KEEPS_ITS_HYPHEN = frozenset({"self", "well"})  # as a word's first part


def joined(text: str) -> str:
    """``text`` with its divided words whole, each on the line where it begins.

    Whether a hyphen belongs to the word is told by the rest of the text, else by its letters.
    """
    known = {word.casefold() for word in _WORD.findall(text)}

    def whole(found: re.Match[str]) -> str:
        first, hyphen, rest, more = found.groups()
        if rest.casefold() in _AFTER_A_HYPHEN and not more.startswith("-"):
            return found.group()
        plain, kept = first + rest, f"{first}-{rest}"
        hyphened = len(first) == 1 or first.casefold() in _KEEPS_ITS_HYPHEN
        if rest[0].isupper() or kept.casefold() in known:
            hyphened = True
        elif plain.casefold() in known:
            hyphened = False
        return f"{plain if hyphen == chr(0xAD) or not hyphened else kept}{more}\n"

    return _NUMBERS.sub("-", _DIVIDED.sub(whole, text)).replace("\u00ad", "")
