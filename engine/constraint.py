"""The form that an answer can be held to: a JSON schema, a regular expression or a grammar. No MLX, no library here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.errors import RequestError

LONGEST = 1_000_000  # characters of a form


@dataclass(frozen=True, slots=True)
class Constraint:
    """``text`` is a JSON schema, a regular expression (Rust's syntax, of the whole answer) or a grammar (Lark's syntax or GBNF).

    ``name`` is what refusals call it. Whether it can be honoured is seen when a request that has it is checked. Raises
    ``RequestError`` for a text of no or too great length.
    """

    kind: Literal["json_schema", "regex", "grammar"]
    text: str
    name: str = field(default="constraint", compare=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.text) <= LONGEST:
            raise RequestError(f"{self.name} has {len(self.text):,} characters: give from 1 to {LONGEST:,}.")


def json_schema(schema: Mapping[str, Any] | str, name: str = "constraint") -> Constraint:
    """JSON without blank space that satisfies ``schema``, an object or its text. Raises ``RequestError`` where it is none."""
    try:
        found = json.loads(schema) if isinstance(schema, str) else schema
        text = json.dumps(found, ensure_ascii=False, allow_nan=False)  # in its own order: that is the order of the answer's keys
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise RequestError(f"{name} cannot be used: the schema is not JSON ({error}).") from None
    if not isinstance(found, Mapping):
        raise RequestError(f"{name} cannot be used: the schema is not a JSON object.")
    return Constraint("json_schema", text, name)


def json_object(name: str = "constraint") -> Constraint:
    """Any JSON object, without blank space between its parts."""
    return json_schema({"type": "object"}, name)


def regex(pattern: str, name: str = "constraint") -> Constraint:
    """An answer that matches all of ``pattern``."""
    return Constraint("regex", pattern, name)


def grammar(rules: str, name: str = "constraint") -> Constraint:
    """An answer that ``rules`` make: in Lark's syntax from ``start`` on, in llama.cpp's (GBNF) from ``root`` on."""
    return Constraint("grammar", rules, name)


def choice(texts: Sequence[str], name: str = "constraint") -> Constraint:
    """One of ``texts``."""
    return grammar("start: " + " | ".join(json.dumps(text, ensure_ascii=False) for text in texts), name)
