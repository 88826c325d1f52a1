"""How answers are drawn: block by block, only the tail touched, code copied alone, nothing swallowed or fetched."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QTextDocument, QWheelEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.core.blocks import Block
from app.ui import theme
from app.ui.answer_body import AnswerBody
from app.ui.blocks import ProseBlock
from app.ui.code_block import CodeBlock
from app.ui.highlight import lexer_for
from app.ui.slices import TURN, cost, slices
from tests.gui.conftest import delete_later

TEXT = """Intro with <b>angle</b> brackets and `vector<int>`.

```python
def f(x):
    return "𝒳 and ü"  # note
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

Last
line
"""


@pytest.fixture
def body(qtbot):
    scroll, body = QScrollArea(widgetResizable=True), AnswerBody(100)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.addWidget(body)
    layout.addStretch(1)
    scroll.setWidget(page)
    scroll.resize(600, 800)
    scroll.show()
    yield body
    scroll.hide()
    delete_later(scroll)


def settle(qtbot, body) -> None:
    """Waits until all code is coloured."""
    code = [widget for widget in body.widgets if isinstance(widget, CodeBlock)]
    qtbot.waitUntil(lambda: not any(widget.highlighter.working for widget in code), timeout=20_000)


def test_streaming_gives_the_same_blocks_as_showing_it_whole(qtbot, body):
    for char in TEXT:
        body.feed(char)
    body.finish()
    streamed = list(body.blocks)
    kinds = [type(widget) for widget in body.widgets]
    body.set_text(TEXT)
    assert body.blocks == streamed and [type(widget) for widget in body.widgets] == kinds
    assert kinds == [ProseBlock, CodeBlock, ProseBlock, ProseBlock, ProseBlock]
    settle(qtbot, body)


def test_a_settled_block_keeps_its_widget_and_is_never_drawn_again(qtbot, body, monkeypatch):
    drawn = []
    draw = ProseBlock._draw
    monkeypatch.setattr(ProseBlock, "_draw", lambda self: (drawn.append(self), draw(self)))
    body.feed("First paragraph.\n\nSecond ")
    first, times = body.widgets[0], drawn.count(body.widgets[0])
    for _step in range(50):
        body.feed("word ")
    body.feed("\n\nThird")
    assert body.widgets[0] is first and drawn.count(first) == times


def test_angle_brackets_are_shown_not_swallowed(body):
    body.set_text("Use vector<int> and List<String>. <b>hm</b> <script>x</script>")
    assert body.widgets[0].toPlainText() == "Use vector<int> and List<String>. <b>hm</b> <script>x</script>"


def test_line_ends_inside_a_paragraph_are_kept(body):
    body.set_text("Roses are red,\nviolets are blue.")
    assert body.widgets[0].toPlainText().replace("\u2028", "\n") == "Roses are red,\nviolets are blue."


def test_copy_takes_the_code_alone_as_the_model_wrote_it(qtbot, body):
    code = "def f():\n\treturn '" + "z" * 5_000 + "'"
    body.set_text(f"Before\n\n```python\n{code}\n```\n\nAfter")
    block = body.widgets[1]
    block.copy_code()
    assert QGuiApplication.clipboard().text() == code
    settle(qtbot, body)
    qtbot.waitUntil(lambda: block._copy.text() == "Copy", timeout=20_000)


def test_code_is_coloured_once_its_fence_closes_also_behind_wide_characters(qtbot, body):
    body.feed('```python\nx = "𝒳𝒳"  # note\n')
    block = body.widgets[0]
    assert block.highlighter._lines == {} and not block.highlighter.working
    body.feed("```\n\nDone.")
    qtbot.waitUntil(lambda: body.blocks[-1].text == "Done.")  # at once, or after a rest where drawing took long
    settle(qtbot, body)
    spans = {group: (start, length) for start, length, group in block.highlighter._lines[0]}
    line = block.edit.document().firstBlock().text().encode("utf-16-le")
    start, length = spans["comment"]
    assert line[2 * start : 2 * (start + length)].decode("utf-16-le") == "# note"
    formats = block.edit.document().firstBlock().layout().formats()
    assert any(span.start == start and span.length == length for span in formats)


def test_coloured_code_follows_the_palette_in_slices(qtbot, body):
    body.set_text("```python\n" + "\n".join(f"x{i} = {i}" for i in range(150)) + "\n```")
    code = body.widgets[0]
    settle(qtbot, body)

    def colours() -> set[str]:
        formats = code.edit.document().findBlockByNumber(140).layout().formats()
        return {each.format.foreground().color().name() for each in formats}

    light = colours()
    code.highlighter.set_dark(not theme.current().dark)
    assert light and code.highlighter.working
    settle(qtbot, body)
    assert colours() and not colours() & light


def test_an_unknown_language_is_left_plain():
    assert lexer_for("no-such-language") is None and lexer_for("") is None and lexer_for("Python") is not None


def test_blocks_are_as_tall_as_their_content_at_any_width(qtbot, body):
    body.set_text("word " * 200)
    prose = body.widgets[0]
    for width in (600, 300):
        body.window().resize(width, 800)
        qtbot.waitUntil(lambda width=width: body.width() < width, timeout=20_000)
        qtbot.waitUntil(lambda: prose.verticalScrollBar().maximum() == 0, timeout=20_000)
        assert abs(prose.height() - prose.document().size().height()) <= 1
    assert prose.height() > 200


def test_an_endless_line_does_not_freeze_the_window(qtbot, body):
    began = time.process_time()
    for _step in range(20):
        body.feed("a" * 2_000)
    body.finish()
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert sum(widget.toPlainText().count("a") for widget in body.widgets) == 40_000
    assert time.process_time() - began < 8.0 and len(body.text) == 40_000


def test_nothing_an_answer_names_is_fetched(body):
    body.set_text("![picture](http://example.invalid/a.png) text")
    image = int(QTextDocument.ResourceType.ImageResource.value)
    assert body.widgets[0].loadResource(image, QUrl("http://example.invalid/a.png")) is None


def test_prose_is_drawn_again_only_when_its_look_changes(qtbot, body, monkeypatch):
    drawn = []
    draw = ProseBlock._draw
    monkeypatch.setattr(ProseBlock, "_draw", lambda self: (drawn.append(self), draw(self)))
    body.set_text("One paragraph.")
    body.restyle(100)
    assert len(drawn) == 1
    body.restyle(130)
    assert len(drawn) == 2


def test_a_block_that_takes_long_to_draw_is_drawn_seldom_while_it_streams_and_whole_at_its_end(qtbot, body, monkeypatch):
    drawn = []
    draw = ProseBlock.set_block

    def slow(self, block):
        drawn.append(block.text)
        time.sleep(0.04)
        draw(self, block)

    monkeypatch.setattr(ProseBlock, "set_block", slow)
    body.feed("word")
    for _ in range(100):
        body.feed(" word")
    assert len(drawn) == 1 and body.answer == "word" + " word" * 100
    qtbot.waitUntil(lambda: len(drawn) == 2, timeout=20_000)  # also where no more text comes
    body.feed(" end")
    body.finish()
    assert body.widgets[-1].toPlainText().endswith("word end")


def test_the_looks_of_a_table_are_laid_out_at_once_and_not_cell_by_cell(body, monkeypatch):
    told = []
    style = ProseBlock._style_table

    def watched(self, table):
        changes = []
        self.document().contentsChange.connect(lambda *_where: changes.append(1))
        style(self, table)
        told.append(len(changes))

    monkeypatch.setattr(ProseBlock, "_style_table", watched)
    body.set_text("|" + "a|" * 50 + "\n|" + "-|" * 50 + "\n|" + "b|" * 50)
    assert told and not any(told)


HUGE = {
    "table": "| row | square |\n|---|---|\n" + "\n".join(f"| r{i} | {i * i} |" for i in range(2_000)),
    "list": "\n".join(f"- item {i} of the list" for i in range(2_000)),
    "quote": "\n".join(f"> line {i} of it" for i in range(2_000)),
    "paragraphs": "\n\n".join(f"paragraph {i} of it" for i in range(2_000)),
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_a_huge_text_is_laid_out_over_many_turns_and_is_whole_at_the_end(qtbot, body, monkeypatch, text):
    drawn: list[int] = []
    draw = ProseBlock._draw
    monkeypatch.setattr(ProseBlock, "_draw", lambda self: (drawn.append(self.cost), draw(self)))
    body.set_text(text)
    assert 0 < sum(drawn) <= 2 * TURN < cost(text)
    assert slices().waiting
    qtbot.waitUntil(lambda: not slices().waiting, timeout=60_000)
    assert sum(drawn) < 2 * cost(text)  # and hardly any of it twice
    assert body.answer == text
    shown = "".join("".join(widget.toPlainText().split()) for widget in body.widgets)
    wanted = [line.strip("|>- ").replace("|", "") for line in text.split("\n") if "--" not in line]
    place = 0
    for line in wanted:
        place = shown.index("".join(line.split()), place)


def test_what_streams_in_behind_a_huge_text_waits_for_its_turn(qtbot, body):
    body.set_text(HUGE["list"], finished=False)
    body.feed("\n\nThe ")
    body.feed("end.")
    body.finish()
    assert slices().waiting
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert body.widgets[-1].toPlainText() == "The end."
    body.set_text("Short again")
    assert [widget.toPlainText() for widget in body.widgets] == ["Short again"]


def test_another_text_takes_the_place_of_one_that_is_still_laid_out(qtbot, body):
    body.set_text(HUGE["list"])
    body.set_text("Only this")
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert [widget.toPlainText() for widget in body.widgets] == ["Only this"]


def test_a_huge_text_follows_another_width_and_size_in_slices_what_is_in_view_first(qtbot, body, monkeypatch):
    body.set_text("\n\n".join("word " * 100 for _ in range(200)))
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    bar = body.window().verticalScrollBar()

    def at_the_end() -> bool:
        bar.setValue(bar.maximum())
        return not slices().waiting and not body.widgets[-1].visibleRegion().isEmpty()

    qtbot.waitUntil(at_the_end, timeout=20_000)
    qtbot.wait(50)
    assert at_the_end()
    fitted: list[ProseBlock] = []
    fit = ProseBlock.fit
    monkeypatch.setattr(ProseBlock, "fit", lambda self: (fitted.append(self), fit(self)))
    body.window().resize(400, 800)
    qtbot.waitUntil(lambda: not slices().waiting and len(set(fitted)) == 200, timeout=20_000)
    assert fitted.index(body.widgets[-1]) < fitted.index(body.widgets[-20])
    assert all(widget.height() >= widget.document().size().height() - 1 for widget in body.widgets)
    body.restyle(150)
    assert slices().waiting
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    assert {widget.font().pointSizeF() for widget in body.widgets} == {body.widgets[0].font().pointSizeF()}
    assert all(widget.height() >= widget.document().size().height() - 1 for widget in body.widgets)


def wheel(widget) -> QWheelEvent:
    """Turns the wheel down over a widget, and returns the event as it was left."""
    at = QPointF(widget.viewport().rect().center())
    none, held = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    event = QWheelEvent(at, at, QPoint(), QPoint(0, -240), none, held, Qt.ScrollPhase.NoScrollPhase, False)
    widget.wheelEvent(event)
    return event


def test_code_of_thousands_of_lines_has_a_view_that_scrolls_by_itself_and_follows_its_end(qtbot, body):
    body.feed("```text\n" + "\n".join(f"line {i}" for i in range(100)))
    code = body.widgets[0]
    qtbot.waitUntil(lambda: code.edit.height() > 100 * code.edit.fontMetrics().lineSpacing())
    assert code._language.text() == "text"
    body.feed("\n" + "\n".join(f"line {i}" for i in range(100, 5_000)))
    qtbot.waitUntil(lambda: not slices().waiting, timeout=20_000)
    bar = code.edit.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.isVisible() and code.edit.height() < 40 * code.edit.fontMetrics().lineSpacing())
    assert bar.maximum() > 4_900 and bar.value() == bar.maximum()
    assert code._language.text() == "text · 5,000 lines"
    bar.setValue(10)
    body.feed("\nmore\n```\n")
    body.finish()
    assert bar.value() == 10 and code.code.endswith("line 4999\nmore")


def test_the_wheel_scrolls_long_code_only_after_a_click_into_it(qtbot, body):
    body.set_text("```\n" + "line\n" * 1_000 + "```")
    edit = body.widgets[0].edit
    qtbot.waitUntil(lambda: edit.verticalScrollBar().maximum() > 0)
    assert edit.verticalScrollBar().value() == 0 and edit.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert not wheel(edit).isAccepted() and edit.verticalScrollBar().value() == 0
    body.window().activateWindow()
    edit.setFocus()
    qtbot.waitUntil(edit.hasFocus)
    assert wheel(edit).isAccepted() and edit.verticalScrollBar().value() > 0


def test_code_runs_from_left_to_right_whatever_a_line_begins_with(qtbot):
    block = CodeBlock(100)
    qtbot.addWidget(block)
    block.resize(600, 200)
    block.show()
    block.set_block(Block("code", "שלום = 1\nx = 2", "py"))
    first, second = (block.edit.document().findBlockByNumber(line).layout().lineAt(0) for line in range(2))
    assert first.naturalTextRect().left() == second.naturalTextRect().left()
