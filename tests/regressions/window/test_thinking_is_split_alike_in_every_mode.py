"""jundot/omlx#866: with DFlash on, the thinking delimiters were dropped and thoughts ran into the answer."""

from __future__ import annotations

import pytest

from tests.gui.conftest import wait_ready
from tests.scripted import words_of

ANSWERS = {
    "by the model": ("", "<think>\nFirst this.\n</think>\n\nThen that."),
    "by the template": ("<think>", "First this.\n</think>\n\nThen that."),
    "in channels": ("", "<|channel|>analysis<|message|>First this.<|end|><|start|>assistant<|channel|>final<|message|>Then that."),
}


@pytest.mark.parametrize("opened", ANSWERS)
def test_plain_dflash_and_side_by_side_show_the_same_thoughts_and_answer(qtbot, window, loader, opened):
    loader.script.open_tag, loader.script.text = ANSWERS[opened]
    loader.script.tokens = len(words_of(loader.script.text))
    talk = window.services.conversation
    for mode in ("dflash", "baseline", "compare"):
        window.do.new_chat()
        talk.send("Why?", mode)
        qtbot.waitUntil(lambda: not talk.client.busy and talk.comparison.running is None, timeout=20_000)
        wait_ready(qtbot, talk.client)
        body = window.transcript.answers[-1].body
        assert (body.thinking.text.strip(), body.answer) == ("First this.", "Then that."), mode
        assert talk.messages[-1].content == "<think>\nFirst this.\n</think>\n\nThen that."
