"""waybarrios/vllm-mlx PR#109, exo-explore/exo PR#1691: emoji and CJK became U+FFFD when decoded token by token.

The engine's own decoder is held to every byte cut in tests/engine/text; here the text that reaches the screen is, piece by piece.
"""

from __future__ import annotations

from app.ui.answer_body import AnswerBody
from engine.text.detokenize import ByteDetokenizer
from tests.gui.conftest import delete_later

TEXT = "family 👨‍👩‍👧‍👦, flags 🇨🇿🇯🇵, skin 👋🏽, Žluťoučký kůň, 漢字かな, e\u0301"


def test_characters_cut_at_every_byte_reach_the_screen_whole(qtbot):
    body = AnswerBody(100)
    detokenizer = ByteDetokenizer({byte: bytes([byte]) for byte in range(256)}, frozenset())
    for byte in TEXT.encode():
        body.feed(detokenizer.push(byte))
        assert "\ufffd" not in body.text
    body.feed(detokenizer.flush())
    body.finish()
    assert body.text == TEXT and body.widgets[0].toPlainText() == TEXT
    delete_later(body)
