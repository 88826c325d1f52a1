"""Where a text may be cut without splitting what a reader sees as one character."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def safe_cut(text: str, position: int) -> int:
    """The last index at or before ``position`` (at least 1) that splits no combined character.

    Knows marks, variation selectors, skin tones, joined emoji and flags. A cluster longer than ``position`` is cut.
    """
    if position >= len(text):
        return len(text)
    cut = position
    while cut > 0 and _continues(text, cut):
        cut -= 1
    return cut if cut > 0 else position


def _continues(text: str, index: int) -> bool:
    """Whether the character at ``index`` belongs to the one before it."""
    char, before = text[index], text[index - 1]
    if char == _JOINER or before == _JOINER:
        return True
    if "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f":  # skin tones, regional flag tags
        return True
    if unicodedata.category(char) in ("Mn", "Me", "Mc"):
        return True
    if _is_flag_half(char) and _is_flag_half(before):
        first = index
        while first > 0 and _is_flag_half(text[first - 1]):
            first -= 1
        return (index - first) % 2 == 1
    return False


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
