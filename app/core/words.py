"""Every word the user reads passes here: English in the source, other languages in gettext catalogues of resources/locale."""

from __future__ import annotations

import gettext
import logging
from pathlib import Path

DOMAIN = "slipstream"
log = logging.getLogger(__name__)


class _Language:
    """The language in use: one a process, as for Qt's own translators."""

    catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(code: str, folder: Path) -> None:
    """Takes the catalogue ``folder/code/LC_MESSAGES/slipstream.mo`` into use; English where there is none."""
    try:
        _Language.catalogue = gettext.translation(DOMAIN, folder, [code])
    except OSError:
        if code != "en":
            log.warning("no catalogue for the language %s", code)
        _Language.catalogue = gettext.NullTranslations()


def tr(text: str, /, **values: object) -> str:
    """``text`` in the user's language with ``{name}`` filled in. Call it when the text is shown, never at import."""
    return _filled(_Language.catalogue.gettext(text), values)


def trn(one: str, many: str, count: int, /, **values: object) -> str:
    """The form that fits ``count``, which fills in as ``{count}`` with thousands separated."""
    return _filled(_Language.catalogue.ngettext(one, many, count), {"count": f"{count:,}", **values})


def _filled(text: str, values: dict[str, object]) -> str:
    return text.format(**values) if values else text
