"""From messages to token ids, and the ids that end an answer."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.models.checkpoint import parse_json
from engine.request import Message, ToolCall
from engine.text.thinking import split_thinking

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_chat(
    tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None, tools: Sequence[str] = (), raw: bool = False
) -> list[int]:
    """Prompt ids [P] by the model's own template, open for the assistant; the bare text for a model without one, or where ``raw``.

    ``thinking`` turns a template's switch for thinking on or off; None leaves it to the template. ``tools``: JSON texts.
    """
    if raw or not tokenizer.has_chat_template:
        return list(tokenizer.encode(bare_text(messages)))
    text = render_chat(tokenizer, messages, thinking, tools)
    return list(tokenizer.encode(text, add_special_tokens=False, verbose=False))


def bare_text(messages: Sequence[Message]) -> str:
    """The chat as a model without a template gets it."""
    return "\n".join(turn["content"] for turn in chat_turns(messages))


def chat_turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as templates take them; halves of surrogate pairs, which no tokenizer takes, become U+FFFD.

    What an earlier answer thought is handed over beside it, under the names in use: the template decides whether it is shown again.
    """
    return [_turn(message) for message in messages]


def _turn(message: Message) -> dict[str, Any]:
    content = LONE_SURROGATE.sub("�", message.content)
    thoughts, answer = split_thinking(content) if message.role == "assistant" else ("", content)
    turn: dict[str, Any] = {"role": message.role, "content": answer}
    if thoughts:
        turn |= {"reasoning_content": thoughts, "thinking": thoughts}
    if message.tool_calls:
        turn["tool_calls"] = [_call(call) for call in message.tool_calls]
    others = {"name": message.name, "tool_call_id": message.tool_call_id}
    return turn | {key: LONE_SURROGATE.sub("�", value) for key, value in others.items() if value}


def _call(call: ToolCall) -> dict[str, Any]:
    """Templates want the arguments as an object; what is none goes in as its text."""
    try:
        arguments = parse_json(call.arguments)
    except ValueError:
        arguments = call.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def thinking_switch(tokenizer: Any) -> bool:
    """Whether the model's template can be told to think or not."""
    if not tokenizer.has_chat_template:
        return False
    turn = [Message("user", "1")]
    try:
        return render_chat(tokenizer, turn, True) != render_chat(tokenizer, turn, False)
    except ModelError:
        return False


def render_chat(tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None, tools: Sequence[str] = ()) -> str:
    """The text of the prompt, see ``encode_chat``."""
    if not tokenizer.has_chat_template:
        return bare_text(messages)
    more: dict[str, Any] = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
    if tools:
        more["tools"] = [json.loads(tool) for tool in tools]
    try:
        return tokenizer.apply_chat_template(chat_turns(messages), tokenize=False, add_generation_prompt=True, **more)
    except Exception as error:  # a template is the model author's program: it may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"The model's chat template refused this chat ({reason}): start a new chat.") from error


def stop_token_ids(folder: Path, tokenizer: Any) -> frozenset[int]:
    """Union of what config.json, generation_config.json and the tokenizer call an end. Any one of them may be wrong alone."""
    found = {token for token in tokenizer.eos_token_ids if token is not None}
    for name in ("config.json", "generation_config.json"):
        file = folder / name
        if not file.exists():
            continue
        try:
            content = parse_json(file.read_bytes())
            for place in (content, content.get("text_config") or {}):
                found |= _token_ids(place.get("eos_token_id"))
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise ModelError(f"{file} cannot be read ({error}): download the model again.") from error
    return frozenset(found)


def _token_ids(value: Any) -> set[int]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(token) is int for token in ids):
        raise TypeError(f"eos_token_id is {reprlib.repr(value)}")
    return set(ids)
