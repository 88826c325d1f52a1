"""Calls of tools in an answer: several models' syntaxes, any cut of the text, and text that only looks like a call."""

from __future__ import annotations

import importlib
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import _infer_tool_parser
from mlx_lm.utils import load_tokenizer

from engine.models import ResolvedPair
from engine.request import Message, ToolCall
from engine.text.chat import encode_chat, render_chat
from engine.text.tool_calls import ToolCallSplitter, ToolSyntax, tool_syntax

TOOL = json.dumps(
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
)
# The parts of Qwen's template that matter here: tools shown; thoughts, calls and results in the history.
HERMES = """{% if tools %}<|im_start|>system
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools><|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}{% for tool_call in message.tool_calls or [] %}{% set tool_call = tool_call.function %}
<tool_call>
{"name": "{{ tool_call.name }}", "arguments": {{ tool_call.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
CALLS = {
    "json_tools": '<tool_call>\n{"name": "weather", "arguments": {"city": "Łódź", "days": 2}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=weather>\n<parameter=city>\nŁódź\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
    "</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS]weather[ARGS]{"city": "Łódź", "days": 2}',
    "pythonic": '<|tool_call_start|>[weather(city="Łódź", days=2)]<|tool_call_end|>',
}  # fmt: skip


def syntax(name: str) -> ToolSyntax:
    parser = importlib.import_module(f"mlx_lm.tool_parsers.{name}")
    return ToolSyntax(parser.tool_call_start, parser.tool_call_end, parser.parse_tool_call)


def fed(name: str, parts: list[str]) -> tuple[str, list[tuple[str, Any]]]:
    splitter = ToolCallSplitter(syntax(name), (TOOL,))
    splits = [*map(splitter.feed, parts), splitter.finish()]
    calls = [call for split in splits for call in split.calls]
    assert len({call.id for call in calls}) == len(calls)
    return "".join(split.text for split in splits), [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_read_in_every_syntax_and_at_every_cut(name: str) -> None:
    text = "Let me look.\n\n" + CALLS[name]
    wanted = ("Let me look.", [("weather", {"city": "Łódź", "days": 2})])
    assert fed(name, [text]) == fed(name, list(text)) == wanted
    for cut in range(len(text)):
        assert fed(name, [text[:cut], text[cut:]]) == wanted


def test_calls_in_a_row_are_all_read_and_the_space_between_them_is_no_text() -> None:
    text, calls = fed("json_tools", [CALLS["json_tools"], "\n", CALLS["json_tools"], "\n"])
    assert (text, len(calls)) == ("", 2)


def test_a_call_that_the_answers_end_cut_off_behind_its_arguments_is_read() -> None:
    assert len(fed("json_tools", [CALLS["json_tools"].removesuffix("</tool_call>")])[1]) == 1


@pytest.mark.parametrize(
    "text",
    ["a <tool_call> is a tag", "x \n<tool_call>no</tool_call> y", '<tool_call>{"nome": 1}</tool_call>', "<tool_c", "a \n", "1 < 2"],
)
def test_what_only_looks_like_a_call_stays_text_to_the_letter(text: str) -> None:
    assert fed("json_tools", [text]) == fed("json_tools", list(text)) == (text, [])


@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", '{"name": "f"}', " ", "\n", "a", "<"]), max_size=12), st.integers())
def test_any_cut_of_any_text_gives_the_same_split(parts: list[str], seed: int) -> None:
    text, draw = "".join(parts), random.Random(seed)
    cuts = sorted(draw.randrange(len(text) + 1) for _ in range(3))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert fed("json_tools", pieces) == fed("json_tools", [text]) == fed("json_tools", parts)


@pytest.fixture
def hermes(starter: ResolvedPair) -> Any:
    """The starter's tokenizer with a template that knows tools."""
    tokenizer = load_tokenizer(starter.target, {"chat_template": HERMES})
    assert _infer_tool_parser(tokenizer._tokenizer) == "json_tools"
    return tokenizer


def test_a_template_that_shows_tools_has_a_syntax_and_another_has_none(hermes: Any, starter: ResolvedPair) -> None:
    found = tool_syntax(hermes)
    assert found is not None and (found.start, found.end) == ("<tool_call>", "</tool_call>")
    assert tool_syntax(load_tokenizer(starter.target)) is None
    deaf = load_tokenizer(starter.target, {"chat_template": HERMES.replace("{% if tools %}", "{% if false %}")})
    assert tool_syntax(deaf) is None


def test_tools_calls_and_results_reach_the_template(hermes: Any) -> None:
    call = ToolCall("weather", '{"city": "Łódź"}', "call_1")
    chat = [Message("user", "Hm?"), Message("assistant", "", tool_calls=(call,)), Message("tool", "rain", tool_call_id="call_1")]
    text = render_chat(hermes, chat, tools=[TOOL])
    assert '"name": "weather"' in text.split("</tools>")[0]
    assert '<tool_call>\n{"name": "weather", "arguments": {"city": "Łódź"}}\n</tool_call><|im_end|>\n<|im_start|>tool\nrain' in text


def test_a_raw_prompt_has_nothing_of_the_template(hermes: Any) -> None:
    assert hermes.decode(encode_chat(hermes, [Message("user", "Once upon")], raw=True)) == "Once upon"
