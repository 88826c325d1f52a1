"""The form that an answer can be held to: a JSON schema, a regular expression or a grammar. No MLX, no library here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.errors import RequestError

LONGEST = 1_000_000  # characters of a form


@dataclass(frozen=True, slots=True)
class Constraint:
    """``text`` is a JSON schema, a regular expression (Rust's syntax, of the whole answer) or a grammar in Lark's syntax.

    Whether it can be honoured is seen when a request that has it is checked. Raises ``RequestError`` for a text of no or too great
    length.
    """

    kind: Literal["json_schema", "regex", "lark"]
    text: str

    def __post_init__(self) -> None:
        if not 0 < len(self.text) <= LONGEST:
            raise RequestError(f"constraint has {len(self.text):,} characters: give from 1 to {LONGEST:,}.")


def json_schema(schema: Mapping[str, Any] | str) -> Constraint:
    """JSON without blank space that satisfies ``schema``, an object or its text. Raises ``RequestError`` where it is none."""
    try:
        found = json.loads(schema) if isinstance(schema, str) else schema
        text = json.dumps(found, ensure_ascii=False, allow_nan=False)  # in its own order: that is the order of the answer's keys
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(f"constraint cannot be used: the schema is not JSON ({error}).") from None
    if not isinstance(found, Mapping):
        raise RequestError("constraint cannot be used: the schema is not a JSON object.")
    return Constraint("json_schema", text)


def json_object() -> Constraint:
    """Any JSON object, without blank space between its parts."""
    return json_schema({"type": "object"})


def regex(pattern: str) -> Constraint:
    """An answer that matches all of ``pattern``."""
    return Constraint("regex", pattern)


def lark(grammar: str) -> Constraint:
    """An answer that the ``start`` rule of ``grammar`` makes."""
    return Constraint("lark", grammar)
