"""Answers are kept in one form, whatever format the model thinks in, and read the same as before."""

from __future__ import annotations

import pytest

from app.core.thoughts import kept_answer
from engine import split_thinking

CHANNELS = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Four."


@pytest.mark.parametrize(("text", "kept"), [
    (CHANNELS, "<think>\nHm.\n</think>\n\nFour."),
    ("<|channel|>analysis<|message|>Hm, cut", "<think>\nHm, cut"),
    ("<|channel|>final<|message|>Four.", "Four."),
    ("<think>\nHm.\n</think>\n\nFour.", "<think>\nHm.\n</think>\n\nFour."),
    ("The mark `<|channel|>` is text.", "The mark `<|channel|>` is text."),
])  # fmt: skip
def test_channels_are_kept_as_tags_and_everything_else_as_it_is(text, kept):
    assert kept_answer(text) == kept and split_thinking(kept) == split_thinking(text)
