"""Answers in a form that a client asks for, as the OpenAI package, LangChain, vLLM's and llama.cpp's clients send it."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.engine.server.conftest import Served

ASKED: Any = [{"role": "user", "content": "Describe a traffic light as JSON."}]
SCHEMA: Any = {"type": "object", "properties": {"is_on": {"type": "boolean"}}, "required": ["is_on"], "additionalProperties": False}


class Colour(Enum):
    red = "red"
    green = "green"


class Lamp(BaseModel):
    colour: Colour
    broken: bool | None


class Light(BaseModel):
    lamps_of_this_light: list[Lamp]


def test_the_openai_package_parses_an_answer_into_the_class_that_was_asked_for(server: Served) -> None:
    """An answer that its limit cut is told from a whole one."""
    completions = server.client().chat.completions
    asked: Any = {"model": "starter", "messages": ASKED, "temperature": 0}
    whole = completions.parse(**asked, response_format=Lamp, max_tokens=60)
    assert isinstance(whole.choices[0].message.parsed, Lamp) and whole.choices[0].finish_reason == "stop"
    with completions.stream(**asked, response_format=Lamp, max_tokens=60) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == whole.choices[0].message.parsed
    with pytest.raises(openai.LengthFinishReasonError) as cut:
        completions.parse(**asked, response_format=Light, max_tokens=9)
    assert (cut.value.completion.choices[0].message.content or "").startswith('{"lamps_of_this_light')


def test_langchain_s_request_for_structured_output_is_answered(server: Served) -> None:
    """What ``with_structured_output(..., method="json_schema", strict=True)`` sends."""
    form = {"type": "json_schema", "json_schema": {"name": "light", "description": "A light.", "schema": SCHEMA, "strict": True}}
    answer = server.post(model="starter", messages=ASKED, n=1, stream=False, temperature=0.7, response_format=form).json()
    assert set(json.loads(answer["choices"][0]["message"]["content"])) == {"is_on"}
    assert answer["choices"][0]["finish_reason"] == "stop" and answer["slipstream"].get("notices", []) == []


WAYS: list[tuple[dict[str, Any], str]] = [
    ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, '{"is_on":'),
    ({"response_format": {"type": "json_object"}, "max_tokens": 2}, "{"),
    ({"json_schema": SCHEMA}, '{"is_on":'),
    ({"grammar": 'root ::= "ab" | "cd"', "response_format": {"type": "text"}}, "ab cd"),
    ({"guided_json": json.dumps(SCHEMA)}, '{"is_on":'),
    ({"guided_regex": "z{3}"}, "zzz"),
    ({"guided_choice": ["left", "right"]}, "left right"),
    ({"structured_outputs": {"json": SCHEMA}}, '{"is_on":'),
    ({"structured_outputs": {"choice": ["left", "right"]}}, "left right"),
]


@pytest.mark.parametrize(("form", "begins"), WAYS, ids=[json.dumps(form)[:60] for form, _ in WAYS])
def test_every_way_of_asking_for_a_form_is_honoured(server: Served, form: dict[str, Any], begins: str) -> None:
    answer = server.post(**({"messages": ASKED, "max_tokens": 20, "temperature": 0} | form)).json()
    text = answer["choices"][0]["message"]["content"]
    assert text.startswith(begins) or text in begins.split(" ")


def test_a_bare_prompt_goes_on_in_its_form(server: Served) -> None:
    answer = server.post("/v1/completions", prompt="The answer is", guided_choice=["yes", "no"]).json()
    assert answer["choices"][0]["text"] in ("yes", "no") and answer["choices"][0]["finish_reason"] == "stop"
