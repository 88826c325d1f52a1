"""A language is chosen by the user or the system, and numbers in its texts are written its way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.words import chosen_language, number, tr, trn, use_language

LOCALE = Path(__file__).parents[3] / "resources" / "locale"


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Leaves the process in English."""
    yield
    use_language("en", LOCALE)


@pytest.mark.parametrize(
    ("setting", "system", "code"),
    [
        ("system", ["de-AT", "de", "en"], "de"),
        ("system", ["fr-FR", "fr"], "en"),
        ("system", ["fr-FR", "de-DE", "en-GB"], "de"),
        ("system", [], "en"),
        ("en", ["de-DE"], "en"),
        ("de", ["en-US"], "de"),
        ("tlh", ["de_DE"], "de"),
    ],
)
def test_the_user_s_choice_goes_before_the_system_s(setting, system, code):
    assert chosen_language(setting, system) == code


def test_numbers_follow_the_language():
    assert tr("{count} of {rate:.1f}", count=12_345, rate=3.25) == "12,345 of 3.2"
    assert trn("{count} chat", "{count} chats", 1_000) == "1,000 chats"
    use_language("de", LOCALE)
    assert tr("{count} of {rate:.1f}", count=12_345, rate=3.25) == "12.345 of 3,2"
    assert number(1_234.5, ",.1f") == "1.234,5" and tr("{flag}", flag=True) == "True"


def test_a_language_without_a_catalogue_is_english(tmp_path, caplog):
    use_language("de", tmp_path)
    assert tr("Ready") == "Ready" and number(1_000) == "1,000"
    assert "no catalogue for the language de" in caplog.text


def test_german_is_german():
    use_language("de", LOCALE)
    assert tr("Ready") == "Bereit" and tr("Search Chats") != "Search Chats"
