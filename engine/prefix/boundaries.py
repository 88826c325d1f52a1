"""Where chats part: the prompt tokens that stay the same when a turn is edited, regenerated or added, found by rendering.

Nothing is assumed about a template: it may drop earlier thinking, move tools or render the last turn in its own way. Two prompts
are compared token by token, so what they have in common is what a later prompt will really begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.errors import ModelError
from engine.request import Message

MAX_TURNS = 8  # how many turns are rendered, the last ones; more would cost time at each prompt
OTHERS = ("1", "A")  # two texts that begin with different tokens

Encode = Callable[[Sequence[Message]], list[int]]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens agree."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def parting_places(encode: Encode, messages: Sequence[Message], ids: Sequence[int], beyond: int) -> list[int]:
    """Where later prompts of the chat part from its prompt ``ids``: at the answer, and where one of the last user turns changes.

    Last first, down to the first that is not past token ``beyond``.
    """
    found = [common_prefix(ids, continued_prefix(encode, messages, OTHERS[0]))]
    turns = [index for index, message in enumerate(messages) if message.role == "user"]
    for index in turns[: -MAX_TURNS - 1 : -1]:
        other = next(text for text in OTHERS if text[0] != messages[index].content.lstrip()[:1])
        changed = [*messages[:index], replace(messages[index], content=other)]
        boundary = common_prefix(ids, _rendered(encode, changed))
        if boundary <= beyond:
            break
        found.append(boundary)
    return found


def continued_prefix(encode: Encode, messages: Sequence[Message], answer: str) -> list[int]:
    """The tokens that every next prompt of the chat begins with once ``answer`` is part of it and another user turn follows."""
    one, other = (_rendered(encode, [*messages, Message("assistant", answer), Message("user", text)]) for text in OTHERS)
    return one[: common_prefix(one, other)]


def _rendered(encode: Encode, messages: Sequence[Message]) -> list[int]:
    """The prompt of a chat; nothing where the template refuses it."""
    try:
        return encode(messages)
    except ModelError:
        return []
