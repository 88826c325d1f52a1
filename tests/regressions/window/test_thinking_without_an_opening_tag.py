"""ml-explore/mlx-lm#877, lmstudio-ai/lmstudio-bug-tracker#612, #1495: a ``</think>`` without an opener showed raw reasoning."""

from __future__ import annotations

import pytest

from tests.gui.conftest import wait_ready
from tests.scripted import words_of


def ask(qtbot, window, loader, text: str, opened: str = "", tokens: int | None = None):
    loader.script.open_tag, loader.script.text = opened, text
    loader.script.tokens = tokens or len(words_of(text))
    window.composer.set_text("Why?")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    return window.transcript.answers[-1].body


@pytest.mark.parametrize("opened", ["<think>", ""], ids=["the template opens it", "nobody opens it"])
def test_thoughts_do_not_show_as_the_answer(qtbot, window, loader, opened):
    body = ask(qtbot, window, loader, "Hm, let me see.\nYes.\n</think>\n\nFour.", opened)
    assert body.answer == "Four." and body.thinking.text.strip() == "Hm, let me see.\nYes."
    assert [widget.toPlainText() for widget in body.widgets] == ["Four."]


def test_an_answer_cut_inside_its_thoughts_is_all_thought_also_after_a_restart(qtbot, window, loader, make_services, make_window):
    body = ask(qtbot, window, loader, "one two three four five six", "<think>", tokens=4)
    assert body.answer == "" and body.thinking.text.strip() == "one two three four"
    window.retire()
    assert window.services.shutdown(20.0)
    again = make_window(make_services())
    body = again.transcript.answers[-1].body
    assert body.answer == "" and body.thinking.text.strip() == "one two three four"


def test_tags_that_thoughts_and_answers_only_mention_stay_text(qtbot, window, loader):
    text = "<think>\nThe tag `</think>` ends it.\n</think>\n\nWrite:\n\n```\n<think>\nhm\n</think>\n```\n\nDone."
    body = ask(qtbot, window, loader, text)
    assert body.thinking.text.strip() == "The tag `</think>` ends it."
    assert body.answer == "Write:\n\n```\n<think>\nhm\n</think>\n```\n\nDone."
    qtbot.waitUntil(lambda: not any(hasattr(w, "highlighter") and w.highlighter.working for w in body.widgets), timeout=20_000)
