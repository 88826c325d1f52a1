"""raullenchai/Rapid-MLX#1843, cristianadam/llama.qtcreator#10: the whole message was parsed again at every flush."""

from __future__ import annotations

from app.core.blocks import BlockSplitter
from app.ui.answer_body import AnswerBody
from app.ui.blocks import ProseBlock
from tests.gui.conftest import delete_later

PARAGRAPH = "A paragraph with **bold** words, `code` and $x^2$, long enough to be worth the trouble of parsing it only once.\n\n"


def test_parsing_grows_with_the_text_and_not_with_its_square():
    costs = []
    for count in (50, 100):
        splitter = BlockSplitter()
        for _paragraph in range(count):
            for start in range(0, len(PARAGRAPH), 8):
                splitter.feed(PARAGRAPH[start : start + 8])
        costs.append(splitter.parsed_chars)
    assert costs[1] <= 2.1 * costs[0] and costs[1] < 4 * 100 * len(PARAGRAPH)


def test_a_finished_block_is_drawn_no_more(qtbot, monkeypatch):
    drawn: list[ProseBlock] = []
    draw = ProseBlock._draw
    monkeypatch.setattr(ProseBlock, "_draw", lambda self: (drawn.append(self), draw(self)))
    body = AnswerBody(100)
    body.feed(PARAGRAPH * 3)
    settled = body.widgets[:2]
    times = [drawn.count(widget) for widget in settled]
    for _piece in range(30):
        body.feed("more ")
    assert [drawn.count(widget) for widget in settled] == times and body.widgets[:2] == settled
    delete_later(body)
