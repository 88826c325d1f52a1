"""The form that a request wants its answer to have, by the names that OpenAI, llama.cpp and vLLM give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.constraint import Constraint, choice, grammar, json_object, json_schema, regex
from engine.errors import RequestError
from engine.server.errors import FORMS, ApiError
from engine.server.schema import Common, ResponseFormat, StructuredOutputs

_MAKERS: dict[str, Callable[[Any, str], Constraint]] = {
    "json_schema": json_schema,
    "grammar": grammar,
    "guided_json": json_schema,
    "guided_regex": regex,
    "guided_choice": choice,
    "guided_grammar": grammar,
}


def constraint_of(body: Common) -> Constraint | None:
    """None where any answer will do. Raises ``ApiError`` for two forms, or one that cannot be made."""
    wanted = {name: value for name in sorted(FORMS) if (value := getattr(body, name)) not in (None, "", {}, [])}
    found: dict[str, Constraint] = {}
    for name, value in wanted.items():
        try:
            made = _made(name, value)
        except RequestError as error:
            raise ApiError(400, str(error), code="invalid_value", param=name) from None
        if made is not None:
            found[name] = made
    if len(found) > 1:
        names = list(found)
        raise ApiError(400, f"{names[1]} and {names[0]} cannot be used together: send one.", code="invalid_value", param=names[1])
    return next(iter(found.values()), None)


def _made(name: str, value: Any) -> Constraint | None:
    if isinstance(value, ResponseFormat):
        return _of_format(value, name)
    if isinstance(value, StructuredOutputs):
        return _of_structured(value, name)
    return _MAKERS[name](value, name)


def _of_format(wanted: ResponseFormat, name: str) -> Constraint | None:
    if wanted.type == "text":
        return None
    described = wanted.json_schema.described if wanted.json_schema is not None else wanted.described
    if described is not None:
        return json_schema(described, name)
    if wanted.type == "json_schema":
        raise RequestError(f"{name}.json_schema is missing: send it with the schema.")
    return json_object(name)


def _of_structured(wanted: StructuredOutputs, name: str) -> Constraint | None:
    ways: list[tuple[Callable[[Any, str], Constraint], Any]] = [
        (json_schema, wanted.schema_), (regex, wanted.regex), (choice, wanted.choice), (grammar, wanted.grammar),
    ]  # fmt: skip
    made = [make(value, name) for make, value in ways if value is not None]
    made += [json_object(name)] if wanted.json_object else []
    if len(made) > 1:
        raise RequestError(f"{name} holds more than one form: send one.")
    return made[0] if made else None
