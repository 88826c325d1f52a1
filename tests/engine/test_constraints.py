"""Forms of answers through the whole engine, on the real starter pair: refused before anything runs, or held in every mode."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest

from engine import Constraint, Event, Finished, GenerationRequest, RequestError, choice, grammar, json_object, json_schema, regex
from engine.engine import Engine
from engine.grammars import KEPT, Grammars
from tests.engine.decoding.forms import closed

PROMPT = "Describe a person as JSON."
COLOURS = ["red", "green", "blue"]
PERSON = closed({"favourite_colour": {"enum": COLOURS}, "age": {"type": "integer", "minimum": 1, "maximum": 9}})


def answer(engine: Engine, constraint: Constraint, **settings: Any) -> Finished:
    events: list[Event] = list(engine.generate(GenerationRequest.of(PROMPT, constraint=constraint, **settings)))
    assert isinstance(events[-1], Finished)
    return events[-1]


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.2, "seed": 3, "top_k": 30, "repetition_penalty": 1.1, "logprobs": 5}])
def test_an_answer_fits_its_schema_and_is_the_same_in_every_mode(engine: Engine, settings: dict[str, Any]) -> None:
    answers = [answer(engine, json_schema(PERSON), mode=mode, **settings) for mode in ("baseline", "dflash", "lookup")]
    assert len({finished.token_ids for finished in answers}) == 1 and {finished.reason for finished in answers} == {"stop"}
    found = json.loads(answers[0].text)
    assert found["favourite_colour"] in COLOURS and 1 <= found["age"] <= 99 and len(found) == 2
    plain, *others = (finished.statistics for finished in answers)
    assert plain.proposed == 0 and plain.cycles == plain.completion_tokens - 1
    for other in others:
        assert other.cycles * 2 < plain.cycles, "keys and braces leave no choice"
    for record in answers[0].logprobs:
        values = [value for _, value in record.top]
        assert all(math.isfinite(value) for value in values) and values[0] == max(values) >= record.logprob
        assert sum(map(math.exp, values)) < 1.001, "the distribution is that over what is allowed"


def test_exact_answers_and_answers_with_stop_texts_are_held_too(engine: Engine) -> None:
    whole = answer(engine, json_schema(PERSON), mode="dflash", exact=True)
    assert json.loads(whole.text) and whole.token_ids == answer(engine, json_schema(PERSON)).token_ids
    cut = answer(engine, json_schema(PERSON), stop=("_colour",))
    assert cut.text == '{"favourite' and cut.reason == "stop"
    short = answer(engine, json_schema(PERSON), max_tokens=3)
    assert short.reason == "length" and short.token_ids == whole.token_ids[:3]


def test_behind_a_thought_that_the_prompt_leaves_open_the_answer_has_its_form(engine: Engine) -> None:
    """The starter copies what it is shown; left to itself it would go on with the next question."""
    shown = 'Q: Give a number.\n<think>\nEasy.\n</think>\n\n{"number":7}\n'
    form = json_schema(closed({"number": {"type": "integer"}}))
    asked = GenerationRequest.of(shown * 3 + "Q: Give a number.\n<think>\n", raw=True, max_tokens=30, constraint=form)
    *_, finished = engine.generate(asked)
    assert isinstance(finished, Finished) and finished.reason == "stop"
    assert finished.text == 'Easy.\n</think>\n\n{"number":7}'


def test_regular_expressions_grammars_and_any_object_are_held(engine: Engine) -> None:
    assert answer(engine, regex("[A-C]{2}-[0-9]{2}")).text[2] == "-"
    assert answer(engine, choice(['"yes"', "nö\n"])).text in ('"yes"', "nö\n")
    assert answer(engine, grammar('root ::= "<" [a-c] [a-c] ">"')).text[::3] == "<>"
    assert answer(engine, json_object(), max_tokens=2).text.startswith("{")


@pytest.mark.parametrize(
    ("constraint", "named"),
    [
        (json_schema({"type": "array", "uniqueItems": True}), "uniqueItems"),
        (json_schema({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "oneOf"),
        (json_schema({"type": "strin"}), "strin"),
        (json_schema({"$ref": "https://example.org/schema"}), "example.org"),
        (json_schema({"type": "integer", "minimum": 3, "maximum": 2}), "minimum"),
        (json_schema({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}), "no answer could have this form"),
        (Constraint("json_schema", "[1]"), "object"),
        (regex("a("), "unclosed group"),
        (grammar("start: other"), "other"),
        (grammar("root ::= ("), "Expected"),
        (grammar("%%%"), "Expected"),
        (grammar("root ::= " + "(" * 9999), "recursion"),
        (grammar("start: " + "(" * 9999), "too deeply nested"),
    ],
)
def test_what_cannot_be_honoured_is_named_before_anything_runs(engine: Engine, constraint: Constraint, named: str) -> None:
    request = GenerationRequest.of(PROMPT, constraint=constraint)
    for ask in (engine.check, engine.generate):
        with pytest.raises(RequestError, match=named) as refused:
            ask(request)
        assert len(str(refused.value)) < 500 and str(refused.value).startswith("constraint cannot be honoured")


@pytest.mark.parametrize("bad", ["", "{", "[1]", "false", {"a": math.nan}, {"a": {1}}, {"a": "\ud800"}])
def test_what_is_no_schema_is_refused_when_it_is_made(bad: Any) -> None:
    with pytest.raises(RequestError, match="schema is not"):
        json_schema(bad)


def test_a_form_and_thinking_or_tools_exclude_each_other() -> None:
    for other in ({"thinking": True}, {"tools": ('{"type": "function"}',)}):
        with pytest.raises(RequestError, match="cannot be used together"):
            GenerationRequest.of(PROMPT, constraint=json_object(), **other)
    assert GenerationRequest.of(PROMPT, constraint=json_object()).thinking is False
    with pytest.raises(RequestError, match="make one with"):
        GenerationRequest.of(PROMPT, constraint={"type": "object"})


class Slow(list[str]):
    """A tokenizer that is not of the kind that the library reads."""

    _tokenizer = None


def test_a_model_whose_tokens_cannot_be_read_refuses_a_form_in_words(engine: Engine) -> None:
    request = GenerationRequest.of(PROMPT, constraint=json_object("response_format"))
    for tokenizer, ends, why in ((Slow(), {2}, "Only fast"), (engine._tokenizer, (), "none of them ends an answer")):
        with pytest.raises(RequestError, match=f"response_format cannot be used with this model.*{why}"):
            Grammars(tokenizer, 49152, frozenset(ends)).check(request)


def test_only_the_latest_forms_are_kept(engine: Engine) -> None:
    for number in range(KEPT + 3):
        engine.check(GenerationRequest.of(PROMPT, constraint=regex(f"a{number}")))
    assert len(engine._grammars._made) == KEPT
    assert answer(engine, regex("a0")).text == "a0"


def test_no_module_loads_the_library_before_a_request_has_a_form() -> None:
    files = list((Path(__file__).parents[2] / "engine").rglob("*.py"))
    found = {file.name: file.read_text(encoding="utf-8") for file in files}
    users = {name: ast.parse(text).body for name, text in found.items() if "from llguidance" in text}
    assert list(users) == ["grammars.py"]
    at_once = [ast.unparse(node) for node in users["grammars.py"] if isinstance(node, ast.Import | ast.ImportFrom)]
    assert at_once and not any("llguidance" in line for line in at_once)
