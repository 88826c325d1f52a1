"""Splits an answer as it streams into what the model thought and what it says.

Reasoning models put their thoughts between two tags, or into a channel of its own. The result depends only on the text, never on
how it was cut into pieces: text that may still become a tag is held back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<seed:think>", "</seed:think>"),
    ("<|think:start|>", "<|think:end|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought", "<channel|>"),
)
_CHANNEL_MARKS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_SPOKEN_CHANNELS = ("final", "commentary")
PIECE = 1024  # characters of a whole text that are looked at together, so that the work grows no faster than the text
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Split:
    """Text to append to the thoughts and to the answer.

    ``moved``: all of the answer given out before was thought after all (its closing tag came without an opening one).
    """

    thinking: str = ""
    answer: str = ""
    moved: bool = False


def opening_tag(prompt: str) -> str:
    """The tag by which a rendered prompt leaves thinking open for the answer, "" where it does not."""
    end = prompt.rstrip()
    return next((tag for tag, _ in TAGS if end.endswith(tag)), "")


def split_thinking(text: str) -> tuple[str, str]:
    """(thoughts, answer) of a whole text, without blank space around the thoughts."""
    splitter = ThinkingSplitter()
    parts = [splitter.feed(text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
    thinking: list[str] = []
    answer: list[str] = []
    for part in [*parts, splitter.finish()]:
        if part.moved:
            thinking, answer = thinking + answer, []
        thinking.append(part.thinking)
        answer.append(part.answer)
    return "".join(thinking).strip(), "".join(answer)


class ThinkingSplitter:
    """Feed text; get what is certain. ``thinking``: the text is inside the thoughts now; ``thought``: there were some.

    A tag counts where models put it: the opening one at the start of the answer, later only alone on its line; the closing one
    anywhere outside code. Tags that a text merely mentions stay text.
    """

    def __init__(self, opened: str = "") -> None:
        """``opened`` is what ``opening_tag`` found at the prompt's end."""
        self._held = ""
        self._code = _Code()
        self._channels: _Channels | None = None
        self._tags = next((pair for pair in TAGS if pair[0] == opened), None)
        self._started = bool(opened)
        self._trim = bool(opened)  # line ends right after a tag belong to it
        self.thinking, self.thought = bool(opened), False

    def feed(self, text: str) -> Split:
        """Appends ``text`` and returns what it made certain."""
        return self._advance(text, final=False)

    def finish(self) -> Split:
        """No more text comes: what was held back is given out."""
        return self._advance("", final=True)

    def _advance(self, text: str, final: bool) -> Split:
        self._held += text
        if not self._started and not self._start(final):
            return Split()
        if self._channels is not None:
            held, self._held = self._held, ""
            part = self._channels.feed(held, final)
            self.thinking = self._channels.thinking
            self.thought = self.thought or bool(part.thinking.strip())
            return part
        thinking: list[str] = []
        answer: list[str] = []
        moved = False
        while True:
            inside, trim = self.thinking, self._trim
            piece, go_on, orphan = self._take_thought(final) if inside else self._take_answer(final)
            piece = piece.lstrip("\n") if trim else piece
            self._trim = (trim and not piece) or self.thinking != inside or orphan
            (thinking if inside else answer).append(piece)
            self.thought = self.thought or (inside and bool(piece.strip()))
            if orphan:
                thinking, answer, moved, self.thought = [*thinking, *answer], [], True, True
            if not go_on:
                return Split("".join(thinking), "".join(answer), moved)

    def _start(self, final: bool) -> bool:
        """Looks for an opening tag at the start of the answer; False: more text is needed."""
        begun = self._held.lstrip()
        marks = ("<|channel|>", "<|start|>", *(tag for tag, _ in TAGS))
        mark = next((mark for mark in marks if begun.startswith(mark)), None)
        if mark is None and not final and (not begun or any(mark.startswith(begun) for mark in marks)):
            return False
        self._started = True
        if mark in ("<|channel|>", "<|start|>"):
            self._channels, self._held = _Channels(), begun
        elif mark is not None:
            self._tags = next(pair for pair in TAGS if pair[0] == mark)
            self._held, self.thinking, self._trim = begun.removeprefix(mark), True, True
        return True

    def _take_thought(self, final: bool) -> tuple[str, bool, bool]:
        """Text up to the closing tag: (text, whether there may be more to take, False)."""
        assert self._tags is not None
        opening, closing = self._tags
        at = self._held.find(closing)
        if at < 0:
            return self._give_out(len(self._held) - (0 if final else _overlap(self._held, closing))), False, False
        end = at + len(closing)
        newline = self._held.find("\n", end)
        rest = self._held[end : newline if newline >= 0 else None]
        before = self._give_out(at)
        if not final and newline < 0 and self._code.needs_more(rest):
            return before, False, False
        if self._code.mentions(rest, opening):
            return before + self._give_out(len(closing)), True, False
        self._code, self._held = _Code(), self._held[len(closing) :]
        self.thinking = False
        return before, True, False

    def _take_answer(self, final: bool) -> tuple[str, bool, bool]:
        """Text up to a line that is nothing but a tag: (text, whether there may be more, whether it closes what nothing opened)."""
        passed = 0
        for start in self._line_starts():
            self._code.pass_over(self._held[passed:start])
            passed = start
            end = self._held.find("\n", start)
            tag = self._held[start : end if end >= 0 else None].strip()
            if end < 0 and not final:
                undecided = any(mark.startswith(tag) for pair in TAGS for mark in pair)
                return self._give_out(start if undecided else len(self._held), passed), False, False
            pair = next((pair for pair in TAGS if tag in pair), None)
            orphan = pair is not None and tag == pair[1]
            if pair is None or (orphan and self.thought) or self._code.fenced:
                continue
            text, self._held = self._held[:start], self._held[end:] if end >= 0 else ""
            self._tags, self._code = pair, _Code()
            self.thinking = not orphan
            return text, True, orphan
        return self._give_out(len(self._held), passed), False, False

    def _line_starts(self) -> Iterator[int]:
        if self._code.at_line_start:
            yield 0
        at = self._held.find("\n")
        while at >= 0:
            yield at + 1
            at = self._held.find("\n", at + 1)

    def _give_out(self, length: int, passed: int = 0) -> str:
        """The first ``length`` characters held, of which the code was told the first ``passed``."""
        text, self._held = self._held[:length], self._held[length:]
        self._code.pass_over(text[passed:])
        return text


class _Code:
    """Whether the place a text has come to is inside Markdown code."""

    def __init__(self) -> None:
        self._fence = ""  # what opened the code block that is open
        self._mentioned: set[str] = set()  # opening tags in its lines so far
        self._begin_line()

    def _begin_line(self) -> None:
        self._line: list[str] = []  # pieces of the line so far, none of them empty
        self._ticks = 0  # runs of backticks in it
        self._blank = True

    @property
    def at_line_start(self) -> bool:
        return not self._line

    @property
    def fenced(self) -> bool:
        """Whether a code block is open."""
        return bool(self._fence)

    def pass_over(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._extend_line(first)
        for piece in rest:
            self._end_line("".join(self._line))
            self._begin_line()
            self._extend_line(piece)

    def needs_more(self, after: str) -> bool:
        """Whether more of its line decides if a closing tag here, with ``after`` behind it, counts."""
        return self.fenced or (self._in_span and "`" not in after)

    def mentions(self, after: str, opening: str) -> bool:
        """Whether a closing tag here, with the rest ``after`` of its line behind it, is only spoken of."""
        if not self.fenced:
            return self._in_span and "`" in after
        # A model that forgot to close a code block still ends its thoughts with a tag alone on its line.
        alone = self._blank and not after.strip()
        return not alone or opening in self._mentioned

    @property
    def _in_span(self) -> bool:
        return self._ticks % 2 == 1

    def _extend_line(self, piece: str) -> None:
        if piece:
            joined = bool(self._line) and self._line[-1].endswith("`") and piece.startswith("`")
            self._ticks += len(re.findall("`+", piece)) - joined
            self._blank = self._blank and not piece.strip()
            self._line.append(piece)

    def _end_line(self, line: str) -> None:
        found = _FENCE.fullmatch(line)
        if not self._fence and found and not (found[1][0] == "`" and "`" in found[2]):
            self._fence, self._mentioned = found[1], set()
        elif self._fence and found and found[1].startswith(self._fence) and not found[2].strip():
            self._fence, self._mentioned = "", set()
        elif self._fence:
            self._mentioned |= {opening for opening, _ in TAGS if opening in line}


class _Channels:
    """The format of gpt-oss: messages in channels, of which "final" and "commentary" are said and the others thought."""

    def __init__(self) -> None:
        self._held, self._header, self._in_header = "", "", True
        self.thinking = False
        self._said = False

    def feed(self, text: str, final: bool) -> Split:
        self._held += text
        thinking: list[str] = []
        answer: list[str] = []
        while True:
            found = min(((at, mark) for mark in _CHANNEL_MARKS if (at := self._held.find(mark)) >= 0), default=None)
            keep = 0 if final else max(_overlap(self._held, mark) for mark in _CHANNEL_MARKS)
            end = len(self._held) - keep if found is None else found[0]
            piece, self._held = self._held[:end], self._held[end:]
            if self._in_header:
                self._header += piece
            else:
                (thinking if self.thinking else answer).append(piece)
            if found is None:
                return Split("".join(thinking), "".join(answer))
            self._held = self._held[len(found[1]) :]
            if self._pass(found[1]):
                (thinking if self.thinking else answer).append("\n\n")

    def _pass(self, mark: str) -> bool:
        """Goes past a mark; True where another message of the same kind goes before the one that begins."""
        if mark == "<|message|>":
            self._in_header = False
            self.thinking = not self._header.strip().startswith(_SPOKEN_CHANNELS)
            again = self._said and not self.thinking
            self._said = self._said or not self.thinking
            return again
        self._in_header = True
        if mark != "<|constrain|>":
            self._header = ""
        if mark in ("<|end|>", "<|call|>", "<|return|>"):
            self.thinking = False
        return False


def _overlap(text: str, mark: str) -> int:
    """Length of the longest end of ``text`` that is a beginning of ``mark``."""
    longest = min(len(mark) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
