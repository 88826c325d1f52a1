"""Calls of tools and thoughts over HTTP: the real starter weights, with a chat template that knows tools, write them themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.engine.server.conftest import Served
from tests.engine.text.test_tool_calls import TOOL

TOOLS: Any = [json.loads(TOOL)]
WRITTEN = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
REPEAT: Any = [{"role": "user", "content": f"Repeat exactly:\n{WRITTEN}"}]
SAID: Any = [  # calls as plain text
    {"role": role, "content": content.replace("Paris", city)}
    for city in ("Rome", "Oslo")
    for role, content in (("user", "Weather in Paris?"), ("assistant", WRITTEN))
] + [{"role": "user", "content": "Weather in Paris?"}]
UNENFORCED = "strict is not enforced: check the arguments of calls of weather."
CALL = ("weather", {"city": "Paris"})


@pytest.fixture(scope="module")
def caller(home: Path, tool_pair: str) -> Iterator[Served]:
    running = Served(home, "--model", tool_pair, "--host", "0.0.0.0")
    yield running
    assert running.stop() == 0


def test_a_call_is_given_as_a_call_and_its_result_leads_on(caller: Served) -> None:
    client = caller.client()
    answer = client.chat.completions.create(model="caller", messages=REPEAT, tools=TOOLS, max_tokens=60)
    assert answer.choices[0].finish_reason == "tool_calls" and answer.choices[0].message.content is None
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.type == "function" and (call.function.name, json.loads(call.function.arguments)) == CALL
    turns: Any = [*REPEAT, answer.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Rain."}]
    after = client.chat.completions.create(model="caller", messages=turns, tools=TOOLS, max_tokens=4)
    assert after.usage and answer.usage and after.usage.prompt_tokens > answer.usage.total_tokens


def test_a_streamed_call_is_the_same_call(caller: Served) -> None:
    stream = caller.client().chat.completions.create(model="caller", messages=REPEAT, tools=TOOLS, max_tokens=60, stream=True)
    chunks = list(stream)
    (call,) = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert call.function and (call.index, call.function.name, json.loads(call.function.arguments or "")) == (0, *CALL)
    assert call.id and chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not "".join(chunk.choices[0].delta.content or "" for chunk in chunks).strip()


def test_the_openai_package_s_helpers_for_tools_work_and_are_told_what_is_not_enforced(caller: Served) -> None:
    """They take only tools that are ``strict``."""

    class Weather(BaseModel):
        city: str

    tool = openai.pydantic_function_tool(Weather, name="weather")
    completions = caller.client().chat.completions
    parsed = completions.parse(model="caller", messages=REPEAT, tools=[tool], max_tokens=60)
    with completions.stream(model="caller", messages=REPEAT, tools=[tool], max_tokens=60) as stream:
        streamed = stream.get_final_completion()
    for answer in (parsed, streamed):
        (call,) = answer.choices[0].message.tool_calls or ()
        assert call.function.parsed_arguments == Weather(city="Paris")
    assert (parsed.model_extra or {})["slipstream"]["notices"][0] == UNENFORCED


def test_without_tools_or_with_tool_choice_none_the_text_stays_text(caller: Served) -> None:
    for settings in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        choice = caller.post(messages=SAID, max_tokens=60, **settings).json()["choices"][0]
        assert WRITTEN in choice["message"]["content"] and choice["finish_reason"] == "stop"
        assert "tool_calls" not in choice["message"]


NAMED: Any = {"type": "function", "function": {"name": "weather"}}
OTHER: Any = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_call_that_has_to_come_comes_or_is_missed_with_an_error(caller: Served, choice: Any) -> None:
    """A model cannot be made to call: that a client gets an answer without the call is out of the question all the same."""
    client = caller.client()
    wanted: Any = {"model": "caller", "tools": TOOLS, "tool_choice": choice}
    answer = client.chat.completions.create(messages=REPEAT, max_tokens=60, **wanted)
    assert [call.function.name for call in answer.choices[0].message.tool_calls or ()] == ["weather"]
    hello: Any = [{"role": "user", "content": "Say hello."}]
    with pytest.raises(openai.UnprocessableEntityError, match="called none of weather, as tool_choice asks") as missed:
        client.chat.completions.create(messages=hello, max_tokens=300, **wanted)
    assert (missed.value.code, missed.value.param) == ("tool_not_called", "tool_choice")
    with pytest.raises(openai.APIError, match="token limit before it called weather"):
        list(client.chat.completions.create(messages=hello, max_tokens=2, stream=True, **wanted))


def test_a_named_tool_is_the_only_one_that_the_model_is_shown(caller: Served) -> None:
    def tokens(tools: Any, **settings: Any) -> int:
        return caller.post(messages=REPEAT, max_tokens=60, tools=tools, **settings).json()["usage"]["prompt_tokens"]

    assert tokens([OTHER, *TOOLS], tool_choice=NAMED) == tokens(TOOLS) < tokens([OTHER, *TOOLS], tool_choice="required")


def test_only_one_call_comes_where_only_one_is_wanted(caller: Served) -> None:
    twice: Any = [{"role": "user", "content": f"Repeat exactly:\n{WRITTEN}\n{WRITTEN.replace('Paris', 'Rome')}"}]
    settings = {"messages": twice, "tools": TOOLS, "max_tokens": 80}
    both = caller.post(**settings).json()["choices"][0]
    one = caller.post(**settings, parallel_tool_calls=False).json()
    assert len(both["message"]["tool_calls"]) == 2
    assert one["choices"][0]["finish_reason"] == "tool_calls" and len(one["choices"][0]["message"]["tool_calls"]) == 1


def test_thoughts_come_apart_from_the_answer(caller: Served) -> None:
    earlier = {"role": "assistant", "content": "Yes.", "reasoning_content": "A rainbow."}
    asked: Any = [{"role": "user", "content": "Is it?"}, earlier] * 2 + [{"role": "user", "content": "Is it?"}]
    whole = caller.post(messages=asked, max_tokens=40, logprobs=True).json()
    message = whole["choices"][0]["message"]
    assert "A rainbow." in message["reasoning_content"] and "<" not in message["reasoning_content"]
    assert message["content"].strip() == "Yes." and whole["usage"]["completion_tokens_details"]["reasoning_tokens"] > 2
    tokens = "".join(entry["token"] for entry in whole["choices"][0]["logprobs"]["content"])
    assert whole["choices"][0]["finish_reason"] == "stop" and tokens.endswith("Yes."), "the token that ends is no part of it"
    chunks = list(caller.client().chat.completions.create(model="caller", messages=asked, max_tokens=40, stream=True))
    deltas = [chunk.choices[0].delta.model_dump() for chunk in chunks]
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == message["reasoning_content"]
    assert "".join(delta.get("content") or "" for delta in deltas) == message["content"]


def test_a_pair_given_by_its_folders_is_served_by_name_without_its_path(caller: Served) -> None:
    card = caller.http.get("/v1/models").json()["data"][0]
    assert card["id"] == "caller" and card["slipstream"]["tools"] is True


def test_a_server_for_the_network_without_a_key_is_warned_of_in_one_line(caller: Served) -> None:
    warnings = [line for line in caller.lines if "anyone who reaches 0.0.0.0" in line]
    assert len(warnings) == 1 and "SLIPSTREAM_API_KEY" in warnings[0]


def test_another_mode_than_asked_for_is_named_in_the_answer(caller: Served) -> None:
    settings = {"messages": SAID, "max_tokens": 2, "mode": "dflash"}
    whole = caller.post(**settings).json()["slipstream"]
    assert (whole["mode"], whole["fallback"]) == ("lookup", "Lookup drafting: this model has no draft.")
    streamed = caller.post(**settings, stream=True).text
    assert '"fallback":"Lookup drafting: this model has no draft."' in streamed
