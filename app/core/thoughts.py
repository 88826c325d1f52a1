"""How an answer is kept whose model thinks in channels of its own: with the tags that everything else here reads."""

from __future__ import annotations

from engine import split_thinking

_CHANNELS = ("<|channel|>", "<|start|>")


def kept_answer(text: str) -> str:
    """``text`` with thoughts between ``<think>`` tags where they came in channels; thoughts that were cut stay open."""
    if not text.lstrip().startswith(_CHANNELS):
        return text
    thoughts, answer = split_thinking(text)
    if not thoughts:
        return answer
    return f"<think>\n{thoughts}\n</think>\n\n{answer}" if answer else f"<think>\n{thoughts}"
