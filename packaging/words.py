"""Collects the user-visible text of ``app`` into resources/locale, brings the translations up to date and compiles them.

    python -m words     (with packaging on the path; ``make words``)

New texts come to a language's .po with an empty translation, texts that are gone leave it.
"""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "resources" / "locale"
MODELS = ROOT / "resources" / "catalog.json"
DOMAIN = "slipstream"
# A command's third argument is its text; all others take it first.
KEYWORDS = {"tr": None, "mark": None, "trn": (1, 2), "Command": (3,)}
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)  # a date of today would make every run a change


def extracted() -> Catalog:
    """Every text of ``app`` and every description of the models' catalog, in alphabetical order and without places, so that two
    branches rarely touch the same lines.
    """
    catalog = Catalog(project="Slipstream", domain=DOMAIN, charset="utf-8", creation_date=NO_DATE, revision_date=NO_DATE)
    found = extract_from_dir(ROOT / "app", method_map=[("**.py", "python")], keywords=KEYWORDS, strip_comment_tags=True)
    for _file, _line, message, _comments, context in found:
        catalog.add(message, context=context)
    for pair in json.loads(MODELS.read_text(encoding="utf-8"))["pairs"]:
        catalog.add(pair["description"])
    return catalog


def po_text(catalog: Catalog) -> bytes:
    """The catalogue as a .po or .pot file holds it."""
    catalog.revision_date = NO_DATE
    buffer = io.BytesIO()
    write_po(buffer, catalog, width=120, no_location=True, sort_output=True, ignore_obsolete=True)
    return buffer.getvalue()


def mo_bytes(catalog: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    buffer = io.BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()


def read(path: Path) -> Catalog:
    """A .po file."""
    with path.open("rb") as file:
        return read_po(file, domain=DOMAIN)


def main() -> int:
    """Writes all catalogues; 1 where a language lacks translations."""
    template = extracted()
    LOCALE.joinpath(f"{DOMAIN}.pot").write_bytes(po_text(template))
    missing = 0
    for path in sorted(LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.po")):
        catalog = read(path)
        catalog.update(template, no_fuzzy_matching=True)
        path.write_bytes(po_text(catalog))
        path.with_suffix(".mo").write_bytes(mo_bytes(catalog))
        empty = [message for message in catalog if message.id and not all(_strings(message.string))]
        missing += len(empty)
        print(f"{path.parent.parent.name}: {len(catalog)} texts, {len(empty)} without a translation")
    return 1 if missing else 0


def _strings(string: str | list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    return (string or "",) if isinstance(string, str | None) else tuple(string)


if __name__ == "__main__":
    sys.exit(main())
