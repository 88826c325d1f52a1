"""Every word the user reads passes here: English in the source, other languages in gettext catalogues of resources/locale."""

from __future__ import annotations

import gettext
import logging
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOMAIN = "slipstream"
LANGUAGES = {"en": "English", "de": "Deutsch"}  # by code, each named in itself
# Between a number and its unit a line never ends.
UNIT = re.compile(r"(?<=\d) (?=(?:%|[mµn]?s|min|h|[kMGT]?B|GiB|tok/s|tok/cycle)(?!\w))")
SWAPPED = str.maketrans(",.", ".,")
log = logging.getLogger(__name__)


class _Language:
    """The language in use: one a process, as for Qt's own translators."""

    code = "en"
    catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(code: str, folder: Path) -> None:
    """Takes the catalogue ``folder/code/LC_MESSAGES/slipstream.mo`` into use; English where there is none."""
    try:
        _Language.code, _Language.catalogue = code, gettext.translation(DOMAIN, folder, [code])
    except OSError:
        if code != "en":
            log.warning("no catalogue for the language %s", code)
        _Language.code, _Language.catalogue = "en", gettext.NullTranslations()


def chosen_language(setting: str, system: Sequence[str]) -> str:
    """The code to use: ``setting`` where it names a language, else the first of the ``system``'s ("de-AT", ...) that there is."""
    if setting in LANGUAGES:
        return setting
    codes = (name.replace("_", "-").split("-")[0].lower() for name in system)
    return next((code for code in codes if code in LANGUAGES), "en")


def mark(text: str) -> str:
    """``text`` as it is: puts a constant into the catalogues. Whoever shows it calls ``tr`` on it."""
    return text


def tr(text: str, /, **values: object) -> str:
    """``text`` in the user's language with ``{name}`` filled in. Call it when the text is shown, never at import."""
    return _filled(_Language.catalogue.gettext(text), values)


def trn(one: str, many: str, count: int, /, **values: object) -> str:
    """The form that fits ``count``, which fills in as ``{count}`` with thousands separated."""
    return _filled(_Language.catalogue.ngettext(one, many, count), {"count": number(count), **values})


def number(value: float, spec: str = ",") -> str:
    """``value`` formatted by ``spec`` ("," or ",.1f"), with the separators of the user's language."""
    return separated(format(value, spec))


def separated(text: str) -> str:
    """A number written the English way, with the separators of the user's language."""
    return text.translate(SWAPPED) if _Language.code == "de" else text


class _Formatter(string.Formatter):
    """Numbers in a text get the separators of the text's language; ``{count}`` alone separates thousands."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return number(value, format_spec or ("," if isinstance(value, int) else ""))
        return super().format_field(value, format_spec)


def unbroken(text: str) -> str:
    """``text`` with numbers and their units kept on one line."""
    return UNIT.sub("\u00a0", text)


def _filled(text: str, values: dict[str, object]) -> str:
    return unbroken(_Formatter().vformat(text, (), values) if values else text)
