"""From messages to token ids, and the ids that end an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.request import Message
from engine.text.thinking import split_thinking

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_chat(tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None) -> list[int]:
    """Prompt ids [P] by the model's own template, open for the assistant; the bare text for a model without one.

    ``thinking`` turns a template's switch for thinking on or off; None leaves it to the template.
    """
    text = render_chat(tokenizer, messages, thinking)
    if not tokenizer.has_chat_template:
        return list(tokenizer.encode(text))
    return list(tokenizer.encode(text, add_special_tokens=False, verbose=False))


def chat_turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The messages as templates take them; halves of surrogate pairs, which no tokenizer takes, become U+FFFD.

    What an earlier answer thought is handed over beside it, under the names in use: the template decides whether it is shown again.
    """
    return [_turn(message.role, LONE_SURROGATE.sub("�", message.content)) for message in messages]


def _turn(role: str, content: str) -> dict[str, str]:
    thoughts, answer = split_thinking(content) if role == "assistant" else ("", content)
    if thoughts:
        return {"role": role, "content": answer, "reasoning_content": thoughts, "thinking": thoughts}
    return {"role": role, "content": answer}


def thinking_switch(tokenizer: Any) -> bool:
    """Whether the model's template can be told to think or not."""
    if not tokenizer.has_chat_template:
        return False
    turn = [Message("user", "1")]
    try:
        return render_chat(tokenizer, turn, True) != render_chat(tokenizer, turn, False)
    except ModelError:
        return False


def render_chat(tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None) -> str:
    """The text of the prompt, see ``encode_chat``."""
    turns = chat_turns(messages)
    if not tokenizer.has_chat_template:
        return "\n".join(turn["content"] for turn in turns)
    try:
        switch = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
        return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **switch)
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
            content = json.loads(file.read_text(encoding="utf-8"))
            for place in (content, content.get("text_config") or {}):
                found |= _token_ids(place.get("eos_token_id"))
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise ModelError(f"{file} cannot be read ({error}): download the model again.") from error
    return frozenset(found)


def _token_ids(value: Any) -> set[int]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(token) is int for token in ids):
        raise TypeError(f"eos_token_id is {value!r}")
    return set(ids)
