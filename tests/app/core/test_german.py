"""The German catalogue as its readers need it: two things that are done differently are not called by one word."""

from __future__ import annotations

import re

import words

FROM_THE_HUB = re.compile(r"\bdownload|\bfetch|^Get\b|\bget it\b", re.IGNORECASE)
INTO_MEMORY = re.compile(r"\bload", re.IGNORECASE)
LADEN = re.compile(r"(?<!herunter)(?<!herunterge)laden\b", re.IGNORECASE)


def test_what_is_fetched_from_the_hub_is_never_told_to_be_loaded():
    catalogue = words.read(words.LOCALE / "de" / "LC_MESSAGES" / "slipstream.po")
    texts = [(message.id, message.string) for message in catalogue if isinstance(message.id, str)]
    fetched = [(text, german) for text, german in texts if FROM_THE_HUB.search(text) and not INTO_MEMORY.search(text)]
    assert len(fetched) > 30
    assert [german for _text, german in fetched if LADEN.search(german)] == [], "„Neu laden“ in the menu reads the same files again"
