"""Figures measured once for a machine, its versions and a pair, and kept on disk from then on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from engine.models.checkpoint import parse_json

log = logging.getLogger(__name__)
T = TypeVar("T")


def measured_once(
    folder: Path, kind: str, identity: Sequence[str], parse: Callable[[dict[str, Any]], T], measure: Callable[[], dict[str, Any]]
) -> T:
    """What ``parse`` makes of the record of ``kind`` kept in ``folder`` for ``identity``, measured and kept where there is none.

    A file that cannot be read, or that ``parse`` refuses (``KeyError``, ``TypeError``, ``ValueError``), is measured again; a
    folder that cannot be written costs only the keeping.
    """
    found = kept(folder, kind, identity, parse)
    if found is not None:
        return found
    record = measure()
    keep(folder, kind, identity, record)
    return parse(record)


def keep(folder: Path, kind: str, identity: Sequence[str], record: dict[str, Any]) -> None:
    """Keeps what was measured; a folder that cannot be written costs only the keeping."""
    file = _file(folder, kind, identity)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(record), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        log.warning("the measured %s cannot be kept in %s: %s", kind, folder, error)


def kept(folder: Path, kind: str, identity: Sequence[str], parse: Callable[[dict[str, Any]], T]) -> T | None:
    """The same where it is kept already and can be read, None elsewhere."""
    file = _file(folder, kind, identity)
    try:
        return parse(parse_json(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("the measured %s in %s cannot be read and is measured again: %r", kind, file, error)
        return None


def _file(folder: Path, kind: str, identity: Sequence[str]) -> Path:
    name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:24]
    return folder / f"{kind}-{name}.json"
