"""Cuts streaming Markdown into blocks so that only the last one is ever drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "code", "table", "quote", "rule"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block to draw. ``text`` is its Markdown source, for "code" the code alone; ``language`` is the fence's tag, "" elsewhere.

    ``closed`` is False for the block still being written: its text grows, and its kind may still change.
    """

    kind: Kind
    text: str
    language: str = ""
    closed: bool = True


class BlockSplitter:
    """``blocks`` depends only on the text fed so far, never on how it was cut into pieces.

    ``blocks[:committed]`` never change again; at most one block follows them. ``parsed_chars`` counts the characters handed to
    the Markdown parser, for tests of linear work. Feed it cleaned text (``app.core.sanitize.clean_text``).
    """

    def __init__(self) -> None:
        self.parsed_chars = 0

    def feed(self, text: str) -> None:
        """Appends ``text``. Raises ``ValueError`` after ``finish``."""
        raise NotImplementedError

    def finish(self) -> None:
        """No more text will come: everything is committed, an open fence is closed where the text ends."""
        raise NotImplementedError

    @property
    def blocks(self) -> list[Block]:
        raise NotImplementedError

    @property
    def committed(self) -> int:
        raise NotImplementedError


def split_blocks(text: str) -> list[Block]:
    """The blocks of a whole text, the same as streaming it gives."""
    splitter = BlockSplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.blocks
