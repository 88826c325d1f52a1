"""Where the messages of a chat stand among the tokens of its prompt; the rest is what the chat template put around them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from engine.errors import RequestError
from engine.request import Message
from engine.text.chat import chat_turns, render_chat

MARK = "\ue000{}\ue001"  # stands for a message when the template alone is wanted; private-use characters, so nobody's text


def content_places(
    tokenizer: Any, messages: Sequence[Message], ids: Sequence[int], thinking: bool | None = None
) -> list[tuple[int, int]]:
    """For each message the tokens [start, stop) of prompt ``ids``, rendered with ``thinking``, that hold nothing but its content.

    From the first message on that the template did not take as it is, they are empty: nothing is told from the template then.
    Raises ``RequestError`` where the tokenizer does not say which characters a token stands for.
    """
    text = render_chat(tokenizer, messages, thinking)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    encoding = None if backend is None else backend.encode(text, add_special_tokens=not tokenizer.has_chat_template)
    if encoding is None or encoding.ids != list(ids):
        raise RequestError("This model's tokenizer does not say where its tokens stand in a text: leave sparse prefill off.")
    whole = [index for index, (begin, end) in enumerate(encoding.offsets) if end > begin]  # an added token stands for no text
    begins, ends = ([encoding.offsets[index][side] for index in whole] for side in (0, 1))
    places = []
    for begin, end in _in_text(tokenizer, messages, text, thinking):
        first, last = bisect_left(begins, begin), bisect_right(ends, end)
        places.append((whole[first], whole[last - 1] + 1) if first < last else (0, 0))
    return places


def _in_text(tokenizer: Any, messages: Sequence[Message], text: str, thinking: bool | None) -> list[tuple[int, int]]:
    """For each message the characters [begin, end) of its content in ``text``, the rendered chat."""
    marked = [Message(message.role, MARK.format(index)) for index, message in enumerate(messages)]
    frame, at = render_chat(tokenizer, marked, thinking), 0
    places: list[tuple[int, int]] = []
    for index, turn in enumerate(chat_turns(messages)):
        before, found, frame = frame.partition(MARK.format(index))
        begin = at + len(before)
        content = next((part for part in (turn["content"], turn["content"].strip()) if text.startswith(before + part, at)), None)
        if not found or content is None:
            break
        at = begin + len(content)
        places.append((begin, at))
    if len(places) < len(messages) or text[at:] != frame:
        known = places[:-1]  # the last one may have matched only the beginning of what stands there
        return known + [(at, at)] * (len(messages) - len(known))
    return places
