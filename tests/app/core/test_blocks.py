"""Streaming Markdown: the cuts do not depend on the pieces, lose nothing, and cost linear work."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given

from app.core.blocks import LINE_LIMIT, LIST_LIMIT, PIECE_LIMIT, TABLE_CELLS, Block, BlockSplitter, split_blocks
from app.core.markdown_lines import parse_lines
from tests.app.core.markdown_samples import ANSWER, PIECES, chunked, markdown_text


def fed(text: str) -> BlockSplitter:
    splitter = BlockSplitter()
    splitter.feed(text)
    return splitter


def kept(text: str) -> list[str]:
    """The lines that no cut may lose: not the blank ones, not the fences; indentation aside."""
    lines = (line.strip(" \t\r") for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith(("```", "~~~"))]


def test_an_answer_is_cut_into_the_blocks_a_reader_sees():
    assert [(block.kind, block.language) for block in split_blocks(ANSWER)] == [
        ("prose", ""), ("code", "python"), ("prose", ""), ("prose", ""), ("table", ""), ("quote", ""), ("rule", ""),
        ("prose", ""), ("prose", ""), ("code", ""),
    ]  # fmt: skip
    assert split_blocks(ANSWER)[1].text == (
        "def is_palindrome(text: str) -> bool:\n    # blank lines inside code stay\n\n    return text == text[::-1]"
    )
    assert split_blocks(ANSWER)[-1].text == "an open fence with ``` inside"


@given(chunked())
def test_the_result_does_not_depend_on_how_the_text_was_cut(pieces: list[str]):
    whole, streamed = fed("".join(pieces)), BlockSplitter()
    for piece in pieces:
        streamed.feed(piece)
    assert streamed.blocks == whole.blocks
    assert streamed.committed == whole.committed
    streamed.finish()
    assert streamed.blocks == split_blocks("".join(pieces))


@given(markdown_text)
def test_committed_blocks_never_change_and_at_most_one_follows(text: str):
    splitter, seen = BlockSplitter(), []
    for char in text:
        splitter.feed(char)
        assert splitter.committed >= len(seen)
        assert splitter.blocks[: len(seen)] == seen
        assert len(splitter.blocks) - splitter.committed in (0, 1)
        assert all(block.closed for block in splitter.blocks[: splitter.committed])
        seen = splitter.blocks[: splitter.committed]
    splitter.finish()
    assert splitter.blocks[: len(seen)] == seen
    assert splitter.committed == len(splitter.blocks)


@given(markdown_text)
def test_no_character_is_lost_but_fence_lines_and_blank_lines(text: str):
    shown = "\n".join(block.text for block in split_blocks(text))
    assert kept(shown) == kept(text)


@example("``` | a | b | word\n--|-- |---|---|\n")
@example("~~~ a | b\n--|--\n1 | 2")
@example("text\n``` a | b\ncode\n```")
@example("# h | a\n--|--\n")
@given(markdown_text)
def test_streaming_cuts_where_parsing_the_whole_text_at_once_does(text: str):
    lines = text.split("\n")
    blocks, spans = split_blocks(text), parse_lines(lines)
    assert [(block.kind, block.language) for block in blocks] == [(span.kind, span.language) for span in spans]
    for block, span in zip(blocks, spans, strict=True):
        if block.kind != "code":
            assert block.text.split("\n") == lines[span.start : span.end]


LONG_TEXTS = (
    "- item {}", "- item {}\n", "1. step\n\n   ```bash\n   run {}\n   ```\n", "word {}", "word {}\n", "> said {}",
    "    code {}", "```\ncode {}\n```", "| a | {} |", "|---|\n|---|---| {}", "<!-- {}",
)  # fmt: skip


@pytest.mark.parametrize("line", LONG_TEXTS)
def test_parsing_stays_proportional_to_the_text(line: str):
    text = "\n".join(line.format(i) for i in range(32_000 // len(line)))
    splitter = BlockSplitter()
    for start in range(0, len(text), 4):
        splitter.feed(text[start : start + 4])
    splitter.finish()
    assert splitter.parsed_chars <= 6 * len(text)


def test_parsing_a_long_answer_token_by_token_is_linear():
    text = ANSWER.replace("~~~", "") * 70
    splitter = BlockSplitter()
    for start in range(0, len(text), 4):
        splitter.feed(text[start : start + 4])
        splitter.blocks  # noqa: B018 - a view at every token must not parse either
    splitter.finish()
    assert len(text) > 30_000
    assert splitter.parsed_chars <= 3 * len(text)


def test_hostile_mixtures_are_linear_too():
    for seed in range(20):
        pick = random.Random(seed)
        text = "\n".join(pick.choice(PIECES) for _ in range(4000))
        splitter = fed(text)
        splitter.finish()
        assert splitter.parsed_chars <= 20 * len(text)


def test_an_open_fence_is_code_that_grows():
    splitter = fed("Look:\n```py\nx = 1")
    assert splitter.blocks[-1] == Block("code", "x = 1", "py", closed=False)
    splitter.feed("\ny = 2\n``")
    assert splitter.blocks[-1] == Block("code", "x = 1\ny = 2", "py", closed=False)
    splitter.feed("`\n")
    assert splitter.blocks[-1] == Block("code", "x = 1\ny = 2", "py")
    assert splitter.committed == 2


def test_code_before_its_first_line_is_already_a_code_block():
    assert fed("```sh\n").blocks == [Block("code", "", "sh", closed=False)]


def test_a_longer_fence_is_not_closed_by_a_shorter_one():
    assert split_blocks("````md\n```\nx\n```\n````\n") == [Block("code", "```\nx\n```", "md")]


def test_code_loses_the_indentation_of_its_fence_only():
    assert split_blocks("  ```\n  a\n    b\n c\n  ```") == [Block("code", "a\n  b\nc")]


@pytest.mark.parametrize("begun", ["```", "```pyth", "``", "~~~", "- ", "-", "**", "1. ", "##", "| a | b", "> "])
def test_a_line_that_may_still_become_markup_is_held_back(begun: str):
    assert fed(f"Done so far\n{begun}").blocks == [Block("prose", "Done so far", closed=False)]


@pytest.mark.parametrize("begun", ["- a", "~~gone~~", "``x`` ", "12", "1. a", "> b", "**bold"])
def test_a_line_that_is_decided_is_shown_at_once(begun: str):
    assert fed(f"Done so far\n{begun}").blocks[-1].text.endswith(begun)


def test_a_table_is_never_shown_with_half_a_header_or_row():
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    for end in range(text.index("---|\n") + 5):
        assert fed(text[:end]).blocks == []
    head = text.index("---|\n") + 5
    assert fed(text[:head]).blocks == [Block("table", "| a | b |\n|---|---|", closed=False)]
    assert fed(text[: head + 5]).blocks == fed(text[:head]).blocks
    assert fed(text).blocks == [Block("table", text.strip(), closed=False)]


def test_a_table_header_without_a_delimiter_row_turns_out_to_be_prose():
    assert fed("| not a table\n").blocks == []
    assert fed("| not a table\nbut text\n").blocks == [Block("prose", "| not a table\nbut text", closed=False)]
    assert split_blocks("| not a table") == [Block("prose", "| not a table")]


def test_a_short_list_stays_whole_and_a_long_one_is_cut_between_its_items():
    short = "".join(f"- item {i}\n" for i in range(10))
    assert [block.text for block in split_blocks(short)] == [short.strip()]
    items = [f"{i}. item {i}\n   more of it" for i in range(1, 400)]
    blocks = split_blocks("\n".join(items))
    assert len(blocks) > 3
    assert "\n".join(block.text for block in blocks) == "\n".join(items)
    assert all(block.text[0].isdigit() for block in blocks)
    assert max(len(block.text) for block in blocks) <= 2 * LIST_LIMIT


ENDLESS = {
    "items": "\n".join(f"- item {i} of many" for i in range(2_000)),
    "items with gaps": "\n\n".join(f"{i}. item {i} of many" for i in range(2_000)),
    "items of one item": "- all of them\n" + "\n".join(f"    - item {i} of many" for i in range(2_000)),
    "items with tabs": "1. all of them\n" + "\n".join(f"\t- item {i} of many" for i in range(2_000)),
    "quote": "\n".join(f"> line {i} of a quotation" for i in range(2_000)),
    "verse": "\n".join(f"line {i} of a poem" for i in range(2_000)),
    "comment": "<!--\n" + "\n".join(f"line {i} of a comment" for i in range(2_000)) + "\n-->",
    "indented": "\n".join(f"    line {i} of code" for i in range(2_000)),
    "one line": "word " * 10_000,
    "one word": "x" * 50_000,
    "one item": "- " + "word " * 10_000,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS.keys())
def test_no_block_grows_without_end_whatever_it_is_and_none_of_it_is_lost(text: str):
    blocks = split_blocks(text)
    assert len(blocks) > 5
    assert max(len(block.text) for block in blocks) <= max(2 * PIECE_LIMIT, LINE_LIMIT)
    assert "".join("".join(block.text.split()) for block in blocks) == "".join(text.split())
    streamed, longest = BlockSplitter(), 0
    for start in range(0, len(text), 37):
        streamed.feed(text[start : start + 37])
        longest = max(longest, len(streamed.blocks[-1].text) if streamed.blocks else 0)
    streamed.finish()
    assert streamed.blocks == blocks
    assert longest <= max(2 * PIECE_LIMIT, LINE_LIMIT)


@pytest.mark.parametrize("kind", ["items of one item", "items with tabs"])
def test_items_of_a_list_that_was_cut_stay_items(kind: str):
    assert all(block.text.startswith("- ") for block in split_blocks(ENDLESS[kind])[1:])
    after = split_blocks(ENDLESS[kind] + "\n\nThe end:\n\n    code\n")
    assert [block.text for block in after[-2:]] == ["The end:", "    code"]


@pytest.mark.parametrize("columns", [2, 30])
def test_a_long_table_goes_on_under_the_same_header(columns: int):
    head = ["|" + "a|" * columns, "|" + "-|" * columns]
    rows = ["|" + f"{i}|" * columns for i in range(700)]
    streamed = BlockSplitter()
    for line in [*head, *rows]:
        streamed.feed(f"{line}\n")
        assert all(block.text.count("\n") * columns <= 3 * TABLE_CELLS for block in streamed.blocks[-1:])
    streamed.finish()
    pieces = [block.text.split("\n") for block in streamed.blocks]
    assert {block.kind for block in streamed.blocks} == {"table"} and len(pieces) > 700 * columns // TABLE_CELLS
    assert all(piece[:2] == head for piece in pieces)
    assert [row for piece in pieces for row in piece[2:]] == rows


def test_a_table_of_long_cells_is_cut_too():
    text = "|a|\n|-|\n" + "\n".join(f"|{i} {'word ' * 200}|" for i in range(40))
    assert max(len(block.text) for block in split_blocks(text)) <= 2 * PIECE_LIMIT


def test_blank_lines_inside_an_html_comment_do_not_cut_it():
    assert split_blocks("<!-- one\n\ntwo -->\n\nafter") == [
        Block("prose", "<!-- one\n\ntwo -->"),
        Block("prose", "after"),
    ]


def test_text_after_the_end_is_refused():
    splitter = fed("a")
    splitter.finish()
    splitter.finish()
    with pytest.raises(ValueError):
        splitter.feed("b")
    assert splitter.blocks == [Block("prose", "a")]


def test_an_empty_text_has_no_blocks():
    assert split_blocks("") == split_blocks("\n \n\n") == []
