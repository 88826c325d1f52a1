"""What cannot be answered: every refusal is an OpenAI-style error that names the parameter, and the server goes on."""

from __future__ import annotations

import json
import socket
from typing import Any

import openai
import pytest

from tests.engine.server.conftest import Served

USER = {"role": "user", "content": "Hi"}
CHAT = {"messages": [USER], "max_tokens": 1}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

# changes to a good chat request: (parameter at fault, part of the message)
BAD_CHATS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"messages": []}, "messages", "at least 1 item"),
    ({"messages": None}, "messages", "valid array"),
    ({"messages": "Hi"}, "messages", "valid array"),
    ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages.0.role", "'system', 'developer', 'user'"),
    ({"messages": [{"role": "user"}]}, "messages.0.content", "missing"),
    ({"messages": [{"content": "Hi"}]}, "messages.0.role", "missing"),
    ({"messages": [{"role": "user", "content": "  "}]}, "messages", "empty"),
    ({"messages": [{"role": "system", "content": "Hi"}]}, "messages", "empty"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content", "valid"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0", "text parts"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text", "missing"),
    ({"messages": [USER, {"role": "tool", "content": "4"}]}, "messages.1.tool_call_id", "name the call"),
    ({"model": 7}, "model", "valid string"),
    ({"max_tokens": 0}, "max_tokens", "at least 1"),
    ({"max_tokens": "many"}, "max_tokens", "valid integer"),
    ({"max_tokens": True}, "max_tokens", "valid integer"),
    ({"max_completion_tokens": 2}, "max_tokens", "differ"),
    ({"temperature": -1}, "temperature", "from 0 to 5"),
    ({"temperature": "hot"}, "temperature", "valid number"),
    ({"top_p": 0}, "top_p", "above 0 to 1"),
    ({"top_k": -2}, "top_k", "0 for all"),
    ({"min_p": 2}, "min_p", "from 0 to 1"),
    ({"presence_penalty": 3}, "presence_penalty", "from -2 to 2"),
    ({"frequency_penalty": 3}, "frequency_penalty", "from -2 to 2"),
    ({"repetition_penalty": 0}, "repetition_penalty", "from 0.01 to 10"),
    ({"logit_bias": {"x": 1}}, "logit_bias", "token ids"),
    ({"logit_bias": {"1": 101}}, "logit_bias", "-100 to 100"),
    ({"logit_bias": {"99999999": 1}}, "logit_bias", "last one is 49151"),
    ({"seed": 1.5}, "seed", "valid integer"),
    ({"stop": ["a"] * 65}, "stop", "up to 64"),
    ({"stop": ""}, "stop", "empty"),
    ({"stop": 7}, "stop", "valid string"),
    ({"logprobs": 3}, "logprobs", "valid boolean"),
    ({"top_logprobs": 3}, "top_logprobs", "logprobs: true"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "top_logprobs is 21: choose a number from 0 to 20"),
    ({"max_tokens": -2}, "max_tokens", "at least 1"),
    ({"repetition_penalty": 1.1, "repeat_penalty": 1.2}, "repetition_penalty", "differ"),
    ({"repeat_penalty": 0}, "repetition_penalty", "from 0.01 to 10"),
    ({"mode": "warp"}, "mode", "'dflash'"),
    ({"n": 2}, "n", "one answer"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "'json_schema'"),
    ({"response_format": {"type": "json_schema"}}, "response_format", "json_schema is missing"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}, "response_format.json_schema.schema", "missing"),
    ({"response_format": {"type": "json_object", "schema": {"not": {}}}}, "response_format", "Unimplemented keys: [\"not\"]"),
    ({"response_format": {"type": "json_object"}, "tools": [TOOL]}, "response_format", "and tools cannot be used together"),
    ({"guided_regex": "a", "guided_json": "{}"}, "guided_regex", "guided_json cannot be used together"),
    ({"guided_regex": "a("}, "guided_regex", "unclosed group"),
    ({"guided_json": "{"}, "guided_json", "not JSON"),
    ({"grammar": "root ::= ("}, "grammar", "Expected"),
    ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "more than one form"),
    ({"structured_outputs": {"structural_tag": "a"}}, "structured_outputs.structural_tag", "extra inputs"),
    ({"tools": [TOOL]}, "tools", "not made to call any"),
    ({"tools": [{"type": "web_search"}]}, "tools.0.type", "'function'"),
    ({"tool_choice": "required"}, "tool_choice", "needs tools"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", "f, which is none of the tools"),
    ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.type", "'function'"),
    ({"tool_choice": "any"}, "tool_choice", "'required'"),
    ({"functions": [{"name": "f"}]}, "functions", "tools"),
    ({"reasoning_effort": "high"}, "reasoning_effort", "none"),
    ({"chat_template_kwargs": {"enable_thinking": True}}, "chat_template_kwargs.enable_thinking", "no switch"),
    ({"chat_template_kwargs": {"other": 1}}, "chat_template_kwargs.other", "extra inputs"),
    ({"modalities": ["text", "audio"]}, "modalities", "only text"),
    ({"mirostat": 2}, "mirostat", "cannot be chosen in this way"),
    ({"enable_thinking": False}, "enable_thinking", "chat_template_kwargs"),
    ({"n_predict": 5}, "n_predict", "max_tokens"),
]
BAD_COMPLETIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": ["a", "b"]}, "prompt", "one text"),
    ({"prompt": [1, 2]}, "prompt", "one text"),
    ({"prompt": ""}, "prompt", "empty"),
    ({"echo": True}, "echo", "not repeated"),
    ({"best_of": 3}, "best_of", "one answer"),
    ({"suffix": "end"}, "suffix", "between"),
    ({"logprobs": True}, "logprobs", "valid integer"),
    ({"max_tokens": 0}, "max_tokens", "at least 1"),
]


def refusal(answer: Any, status: int = 400) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"].endswith(".") and error["code"]
    return error


@pytest.mark.parametrize(("change", "param", "words"), BAD_CHATS, ids=[json.dumps(change)[1:50] for change, *_ in BAD_CHATS])
def test_a_bad_chat_request_is_refused_by_the_parameter_s_name(server: Served, change: dict, param: str, words: str) -> None:
    for stream in (False, True):
        error = refusal(server.post(**(CHAT | {"stream": stream} | change)))
        assert error["type"] == "invalid_request_error" and error["param"] == param and words in error["message"], error


@pytest.mark.parametrize(("change", "param", "words"), BAD_COMPLETIONS)
def test_a_bad_completion_request_is_refused_by_the_parameter_s_name(server: Served, change: dict, param: str, words: str) -> None:
    error = refusal(server.post("/v1/completions", **({"prompt": "Hi", "max_tokens": 1} | change)))
    assert error["param"] == param and words in error["message"], error


def test_what_changes_no_answer_is_taken(server: Served) -> None:
    harmless = {
        "user": "me", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "n": 1, "response_format": {"type": "text"},
        "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "top_k": -1, "modalities": ["text"],
        "logit_bias": {}, "stop": None, "safety_identifier": "x", "prompt_cache_key": "y", "seed": -5, "audio": None,
        "stream_options": {"include_usage": True}, "top_logprobs": 0, "cache_prompt": True, "keep_alive": "5m", "typical_p": 1.0,
        "mirostat": 0, "dry_multiplier": 0.0, "repeat_penalty": 1, "grammar": "", "top_n_sigma": -1, "stream": False,
    }  # fmt: skip
    answer = server.post(**(CHAT | harmless))
    assert answer.status_code == 200 and answer.json()["slipstream"]["notices"] == []


@pytest.mark.parametrize(("path", "good"), [("/v1/chat/completions", CHAT), ("/v1/completions", {"prompt": "Hi", "max_tokens": 1})])
def test_fields_that_mean_nothing_here_are_taken_and_told(server: Served, path: str, good: dict[str, Any]) -> None:
    """As every other local server takes them; but a mistyped name must not pass without a word."""
    body = good | {"tempurature": 1, "provider": {"sort": "price"}, "nothing": None, "x" * 1000: 1}
    wanted = f"Not known here and without effect: tempurature, provider, {'x' * 40}."
    assert server.post(path, **body).json()["slipstream"]["notices"] == [wanted]
    assert json.dumps(wanted) in server.post(path, **body, stream=True).text
    many = server.post(path, **(good | {f"field{number}": 1 for number in range(13)})).json()["slipstream"]["notices"]
    assert many[0].endswith("field9 and 3 more.")


def test_an_assistant_s_turn_without_content_is_an_empty_one(server: Served) -> None:
    turns = [[USER, {"role": "assistant", **content}, USER] for content in ({}, {"content": None}, {"content": ""})]
    counts = [server.post(**(CHAT | {"messages": messages})).json()["usage"]["prompt_tokens"] for messages in turns]
    assert counts == [counts[0]] * 3


@pytest.mark.parametrize(
    ("raw", "words"),
    [(b"", "not JSON"), (b"Hi", "not JSON"), (b"[1]", "not a JSON object"), (b'{"messages": [', "not JSON"),
     (b"\xff\xfe", "not JSON"), (b'{"messages": ' + b"[" * 5000, "not JSON"),
     (b'{"messages": [{"role": "user", "content": "Hi"}], "temperature": NaN}', "finite number")],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(server: Served, raw: bytes, words: str) -> None:
    assert words in refusal(server.http.post("/v1/chat/completions", content=raw))["message"]


def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers_streamed_or_not(server: Served) -> None:
    client, long = server.client(), [{"role": "user", "content": "word " * 9000}]
    words = r"This model's maximum context length is 8,192 tokens and the prompt has 9,\d{3}: shorten it"  # LiteLLM looks for these
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match=words) as refused:
            client.chat.completions.create(model="starter", messages=long, stream=stream)  # type: ignore[call-overload]
        assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")


def test_a_huge_body_is_refused_before_it_is_read(server: Served) -> None:
    """Of a length that no context holds: counting its tokens would keep all others waiting."""
    assert refusal(server.http.post("/v1/chat/completions", content=b"x" * (2**20 + 1)), 413)["code"] == "request_too_large"
    parts = (b"x" * 2**19 for _ in range(3))  # without a length
    assert refusal(server.http.post("/v1/chat/completions", content=parts), 413)["code"] == "request_too_large"


def test_a_body_that_says_it_is_huge_is_refused_before_a_byte_of_it_came(server: Served) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
        assert wire.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("POST", "/v1/embeddings", 404), ("POST", "/v1/responses", 404),
     ("GET", "/v1/chat/completions", 405), ("POST", "/health", 405),
     ("GET", "/v1/models/none", 404)],
)  # fmt: skip
def test_a_wrong_address_or_method_is_an_error_object_too(server: Served, method: str, path: str, status: int) -> None:
    answer = server.http.request(method, path)
    told = refusal(answer, status)["message"]
    assert status != 405 or answer.headers["allow"]
    assert ("use /v1/chat/completions and" in told) == (path in ("/v1/embeddings", "/v1/responses"))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]", ""])
def test_another_name_for_this_computer_is_refused(server: Served, host: str) -> None:
    """A web page can point its own name here (DNS rebinding); the browser then sends that name."""
    assert refusal(server.http.post("/v1/chat/completions", json=CHAT, headers={"Host": host}), 403)["code"] == "host_not_allowed"


@pytest.mark.parametrize("host", ["localhost", "LocalHost:99", "127.0.0.1", "[::1]:8000", "host.docker.internal:8000"])
def test_this_computer_s_own_names_are_taken(server: Served, host: str) -> None:
    assert server.http.get("/health", headers={"Host": host}).status_code == 200


def test_web_pages_are_refused_unless_allowed(server: Served) -> None:
    answer = server.http.post("/v1/chat/completions", json=CHAT, headers={"Origin": "https://evil.example"})
    assert "--allow-origin https://evil.example" in refusal(answer, 403)["message"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origin", ["null", "file://"])
def test_a_page_that_cannot_be_named_is_told_of_what_would_allow_it(server: Served, origin: str) -> None:
    answer = server.http.get("/v1/models", headers={"Origin": origin})
    assert "--allow-origin '*'" in refusal(answer, 403)["message"]
